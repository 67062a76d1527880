/** One tensor as a model has it: the place of its bytes, and the updates added when it is read. */

import type { Dtype } from '../formats/dtype';

/** Place of the bytes of one stored tensor. */
export interface TensorRef {
  /** Model path (key of the opened folders). */
  folder: string;
  file: string;
  /** Name inside the file. */
  key: string;
  dtype: Dtype;
  shape: readonly number[];
  /** Absolute byte range in the file. */
  begin: number;
  end: number;
  /** Set for a tensor of token rows seen in another vocabulary; then `begin` is 0, and dtype, shape and `end` are its. */
  rows?: RowMap;
  /** Set for values that are computed when they are read; then dtype is F32, `begin` 0, and shape and `end` are its. */
  derived?: Derived;
}

/** Reads bytes [begin, end) of a stored tensor, counted from its first byte. */
export interface ReadTensor {
  (ref: TensorRef, begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
  /** The same at once, into memory that may move afterwards; false where it takes waiting. */
  now?(ref: TensorRef, begin: number, end: number, into: Uint8Array<ArrayBuffer>): boolean;
}

/** Makes all values that plain data describe, from other tensors. */
export type MakeValues<Params> = (
  from: readonly TensorRef[],
  params: Params,
  read: ReadTensor,
) => Promise<Float32Array>;

/** Values computed on the host from stored ones: a weight under an adapter of another kind than LoRA. */
export interface Derived {
  /** Stored tensors that it is computed from. */
  from: readonly TensorRef[];
  /** Reads what all of it needs, and returns a reader of elements [begin, end). */
  open(read: ReadTensor): Promise<(begin: number, end: number) => Promise<Float32Array>>;
  /** Set where that is known by plain data alone: a format of `quantized/`. */
  quantized?: { id: string; format: string; params: Readonly<Record<string, number | readonly number[]>> };
  /** Set where plain data say how, beside the tensors: then a thread opens it by itself. */
  made?: { id: string; params: object; elements: number };
  /** What is written where no dtype is chosen; BF16 by default. */
  dtype?: Dtype;
}

/**
 * How one contributor's version of a tensor comes about: stored weights (its own, or the base's where an adapter
 * leaves them alone), plus at most one low-rank update and one scaled addend.
 */
export interface TensorView {
  /** Stored weights this version starts from. */
  origin: TensorRef;
  /** True when `origin` is the very tensor the base uses, and the base is nothing but it: τ needs no subtraction. */
  onBase: boolean;
  lowRank?: LowRank;
  /** `lora_bias`: adds `scale` × the stored vector. */
  addend?: { tensor: TensorRef; scale: number };
}

/**
 * ΔW[row, col] = scale · Σ_k L[row, k] · R[k, col] for a tensor of `shape` [rows, cols]; `a` is lora_A [r, in], `b` is
 * lora_B [out, r]. `layout` is how they map onto the stored weight:
 * `linear` L = B, R = A · `transposed` (Conv1D, embeddings) L = Aᵀ, R = Bᵀ.
 */
export interface LowRank {
  a: TensorRef;
  b: TensorRef;
  rank: number;
  scale: number;
  layout: 'linear' | 'transposed';
  /** DoRA magnitude m, one value per output unit: W' = m / ‖W + ΔW‖ · (W + ΔW). */
  magnitude?: TensorRef;
}

/** A tensor rows are taken from, with the update its model has on it. */
export interface RowSource {
  tensor: TensorRef;
  lowRank?: LowRank;
}

export interface RowMap {
  /** `columns`: a factor whose columns, not rows, stand for tokens. */
  axis: 'rows' | 'columns';
  sources: readonly RowSource[];
  /** For each output row the index of its source, or one of the constants above. */
  source: Int32Array;
  /** For each output row the row of its source. */
  row: Int32Array;
  /** Of the rows that are sums of others; absent where there are none. */
  sums?: RowSums;
}

/** Weighted sums of stored rows: parts [begin[i], begin[i + 1]) are those of output row i. */
export interface RowSums {
  begin: Int32Array;
  /** Index of each part's source, its row there, and its factor. */
  source: Uint16Array;
  row: Int32Array;
  weight: Float64Array;
  /** Norm that each output row is brought to; 0 leaves it as it is. */
  norm?: Float64Array;
}
