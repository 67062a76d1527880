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

/** One of the tensors that a weight is the sum of, each times its scale; all have its shape. */
export interface WeightSummand {
  /** By which it is read. */
  name: string;
  dtype: WeightDtype;
  scale: number;
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
  /**
   * Linear weights of the blocks, and the head's, as sums, by their stored names: applied without being added up. The first has
   * the scale 1.
   */
  readonly sums?: ReadonlyMap<string, readonly WeightSummand[]>;
  /** True when reading computes on the runner's own engine: nothing is then read ahead. */
  readonly exclusive?: boolean;
  /** How many tensors may be read at once: more than one where they are computed on several engines. Default 1. */
  readonly atOnce?: number;
}

/** A weight as a sum: of itself where it is no other. */
export function summandsOf({ sums, tensors }: WeightSource, name: string): readonly WeightSummand[] {
  return sums?.get(name) ?? [{ name, dtype: tensors.get(name)!.dtype, scale: 1 }];
}

/** What changed in a source, by stored names. */
export interface ChangedWeights {
  /** Low-rank updates, and scales of summands, over weights that are as they were. */
  updates: ReadonlySet<string>;
  weights: ReadonlySet<string>;
}

/** Updates of one weight stored [rows, cols] as one, their scales in its left factor; one alone as it is. */
export function joinedUpdate(updates: readonly LowRankUpdate[]): LowRankUpdate | undefined {
  if (updates.length < 2) return updates[0];
  const rank = updates.reduce((sum, update) => sum + update.rank, 0);
  return {
    rank,
    scale: 1,
    async load(signal) {
      const factors: Awaited<ReturnType<LowRankUpdate['load']>>[] = [];
      for (const update of updates) factors.push(await update.load(signal));
      const rows = factors[0]!.left.length / updates[0]!.rank;
      const left = new Float32Array(rows * rank);
      let column = 0;
      for (const [i, { rank: own, scale }] of updates.entries()) {
        for (let r = 0; r < rows; r++) {
          for (let k = 0; k < own; k++) left[r * rank + column + k] = scale * factors[i]!.left[r * own + k]!;
        }
        column += own;
      }
      const right = new Float32Array(factors.reduce((sum, factor) => sum + factor.right.length, 0));
      let at = 0;
      for (const factor of factors) {
        right.set(factor.right, at);
        at += factor.right.length;
      }
      return { left, right };
    },
  };
}
