import type { Dtype } from '../formats/dtype';

/** One safetensors file that will be written. */
export interface ShardPlan {
  file: string;
  /** Tensors in file order. */
  tensors: { name: string; dtype: Dtype; shape: readonly number[]; byteLength: number }[];
  /** Complete header, 8-byte length included. */
  header: Uint8Array<ArrayBuffer>;
  byteLength: number;
}
