/** Source of a model's weights: files, a base with an adapter, or a merge that is not written. */
import type { WeightDtype } from '../formats/dtype';

export interface StoredWeight {
  dtype: WeightDtype;
  shape: readonly number[];
}

/** ΔW = scale · L · R for a stored weight [rows, cols]: L [rows, rank], R [rank, cols], f32, row after row. */
export interface LowRankUpdate {
  rank: number;
  scale: number;
  load(signal?: AbortSignal): Promise<{ left: Float32Array; right: Float32Array }>;
}

export interface WeightSource {
  /** Every tensor by its stored name. */
  readonly tensors: ReadonlyMap<string, StoredWeight>;
  /**
   * Bytes [begin, end) of a tensor, little-endian and row after row, as a fresh array. A pass reads each tensor once,
   * from its first byte to its last, in model order; of the token embedding only the rows it needs, ascending.
   */
  read(name: string, begin: number, end: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /** LoRA updates by the stored name of a linear weight of the blocks; applied without being added to it. */
  readonly updates?: ReadonlyMap<string, LowRankUpdate>;
  /** True when reading computes on the runner's own engine: nothing is then read ahead. */
  readonly exclusive?: boolean;
  /** How many tensors may be read at once: more than one where they are computed on several engines. Default 1. */
  readonly atOnce?: number;
}
