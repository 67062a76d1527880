import type { Dtype } from '../formats/dtype';

/** A file of the output that holds tensors. */
export interface FilePlan {
  file: string;
  /** Parts of the file in order, by the tensor of the merge each is made of. */
  tensors: { name: string; byteLength: number }[];
  /** Everything ahead of the first part. */
  header: Uint8Array<ArrayBuffer>;
  byteLength: number;
}

/** Those files that an index names where they are several: of the body, not of the modules behind it. */
export function indexedFiles<T extends { file: string }>(files: readonly T[]): T[] {
  const body = files.filter(({ file }) => !file.includes('/'));
  return body.length > 1 ? body : [];
}

/** One safetensors file that will be written. */
export interface ShardPlan extends FilePlan {
  /** Tensors in file order. */
  tensors: { name: string; dtype: Dtype; shape: readonly number[]; byteLength: number }[];
  /** Complete header, 8-byte length included. */
  header: Uint8Array<ArrayBuffer>;
}
