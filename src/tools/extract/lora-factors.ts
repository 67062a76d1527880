import { exact } from '../../backend/exact';
import { type WeightDtype, weightBytes } from '../../formats/dtype';
import { encodeFromF32 } from '../../formats/half';
import { column } from '../../linalg/columns';
import type { Svd } from '../../linalg/small-svd';

/** The factors of a module with all singular values that may be wanted, each rank a row of its own. */
export interface LoraFactors {
  /** √sᵢ · (side of the inputs), row after row. */
  a: Float32Array<ArrayBuffer>;
  /** √sᵢ · (side of the outputs), row after row: Bᵀ. */
  b: Float32Array<ArrayBuffer>;
  inputs: number;
  outputs: number;
}

/**
 * A = √S·Vᵀ and B = U·√S for Δ = U·S·Vᵀ stored as [outputs, inputs]; for Δ stored as [inputs, outputs] (Conv1D and
 * embeddings) the sides change places. The scale goes evenly to both, as in mergekit (extract_lora.py).
 */
export function factorsOf({ s, u, v }: Svd, count: number, transposed: boolean): LoraFactors {
  const [left, right] = transposed ? [v, u] : [u, v];
  const a = new Float32Array(count * right.rows);
  const b = new Float32Array(count * left.rows);
  for (let i = 0; i < count; i++) {
    const root = Math.sqrt(s[i]!);
    a.set(
      column(right, i).map((x) => exact(x * root)),
      i * right.rows,
    );
    b.set(
      column(left, i).map((x) => exact(x * root)),
      i * left.rows,
    );
  }
  return { a, b, inputs: right.rows, outputs: left.rows };
}

/** lora_A [rank, inputs]. */
export function firstRanks({ a, inputs }: LoraFactors, rank: number): Float32Array {
  return a.subarray(0, rank * inputs);
}

/** lora_B [outputs, rank]. */
export function firstRanksByOutput({ b, outputs }: LoraFactors, rank: number): Float32Array {
  const out = new Float32Array(outputs * rank);
  for (let i = 0; i < rank; i++) for (let o = 0; o < outputs; o++) out[o * rank + i] = b[i * outputs + o]!;
  return out;
}

/** Values as they are stored. */
export function encoded(values: Float32Array, dtype: WeightDtype): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(values.length * weightBytes(dtype));
  encodeFromF32(values, dtype, bytes);
  return bytes;
}
