/**
 * The plan: what a run will do, known from headers and configs alone. Every output tensor, who contributes to it and
 * how its values are obtained, the resolved parameters, the shards, the bytes, and every mismatch with its remedy.
 */

import type { PlanProblem } from '../../engine/protocol';
import type { VocabularyFacts } from '../../engine/protocol-vocabulary';
import type { Dtype, WeightDtype } from '../../formats/dtype';
import type { Recipe } from '../../formats/recipe';
import type { TensorRole } from '../../models/tensor-role';
import type { RowMap } from '../vocabulary/row-map';

/** Where the bytes of one stored tensor are. */
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
 * lora_B [out, r]. `layout` says how they map onto the stored weight:
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

export interface TensorPlan {
  name: string;
  shape: readonly number[];
  elements: number;
  /** Dtype written; for a copied tensor any dtype. */
  dtype: Dtype;
  role: TensorRole;
  /** Set when the bytes go through untouched. */
  copy?: TensorRef;
  /** True where `include` and `exclude` leave the tensor as the base has it. */
  leftOut?: boolean;
  base?: TensorView;
  /** One entry per contributor of this tensor, in recipe order, with its resolved parameters. */
  models: { id: string; ordinal: number; view: TensorView; parameters: ResolvedParameters }[];
  /** Method-wide parameters resolved for this tensor. */
  parameters: ResolvedParameters;
  /** Method of this tensor: the recipe's. */
  method: string;
}

export type ResolvedParameters = Readonly<Record<string, number | boolean | string>>;

export interface ShardPlan {
  file: string;
  /** Tensors in file order. */
  tensors: { name: string; dtype: Dtype; shape: readonly number[]; byteLength: number }[];
  /** Complete header, 8-byte length included. */
  header: Uint8Array<ArrayBuffer>;
  byteLength: number;
}

export interface Plan {
  recipe: Recipe;
  problems: PlanProblem[];
  base?: string;
  contributors: string[];
  tensors: TensorPlan[];
  /** Filled only when the plan has no errors. */
  shards: ShardPlan[];
  /** Small files written beside the shards: path → text or bytes read from a model folder. */
  extras: { path: string; content: { text: string } | { folder: string; file: string } }[];
  /** Every weight file the run reads. */
  inputs: { folder: string; file: string; byteLength: number; readBytes: number }[];
  /** Layers of the output. */
  layers: number;
  /** Who has which vocabulary, and what the output has. */
  vocabulary?: VocabularyFacts;
  /** Bytes of Hub files that are not in the cache yet; files come whole. */
  bytesToDownload: number;
  bytesToRead: number;
  bytesToWrite: number;
  /** Estimated memory of the run at its peak, device and worker together. */
  peakBytes: number;
}

/** The dtype a tensor is computed into, when it is computed at all. */
export type OutputDtype = WeightDtype;
