/** What crosses the worker boundary for comparing two models and for extracting a LoRA, as plain serialisable data. */

import type { ErrorCode } from '../../errors';
import type { BackendChoice, BackendKind } from '../../reports/backend';
import type { EvaluateReport } from '../../reports/evaluate';
import type { DestinationSpec, Progress, WorkSeconds } from '../../reports/job';

/** Progress of comparing and extracting. */
export interface CompareProgress extends Omit<Progress, 'phase' | 'finished'> {
  phase: 'downloading' | 'comparing' | 'extracting' | 'checking' | 'evaluating';
  /** Tensors compared since the last message; empty while extracting. */
  finished: TensorDifference[];
}

// ---------------------------------------------------------------- compare

export interface CompareRequest {
  /** Model references, `path[@revision][+adapter[@revision]]`. */
  base: string;
  finetuned: string;
  engine: BackendChoice;
  /** Where the report's files go; without one only the report comes back. */
  destination?: DestinationSpec;
  /** An element with |Δ| above it counts as changed. Default 1e-6. */
  threshold?: number;
  /** Spectra of all modified matrices. Default true; without, only the stable rank is computed. */
  loraAnalysis?: boolean;
  /** Measures every tensor on the other engine too. Default false. */
  timeEngines?: boolean;
  /** Rows of the tables of most changed tensors. Default 20. */
  top?: number;
  /** Seed of the randomized decompositions. Default 0. */
  seed?: number;
  /** Elements of one tile; tests vary it. */
  tileElements?: number;
}

/** How one tensor differs; Δ = finetuned − base, all norms are Frobenius norms. */
export interface TensorDifference {
  name: string;
  layer: number | null;
  module: string;
  shape: number[];
  dtype: { base: string; finetuned: string };
  elements: number;
  meanAbs: number;
  maxAbs: number;
  normBase: number;
  normFinetuned: number;
  normDelta: number;
  /** ‖Δ‖ / (‖base‖ + 1e-10) */
  relative: number;
  /** Shares of elements in [0, 1]. */
  changedRatio: number;
  signFlipRatio: number;
  bitDifferentRatio: number;
  /** 1 where both are zero, 0 where one is. */
  cosine: number;
  rows: RowNorms;
  /** ‖Δ‖² / σ₁²; 0 without a change, null for what is no matrix. */
  stableRank: number | null;
  /** changedRatio > 0.01 or relative > 0.01. */
  modified: boolean;
  /** Spectrum of a modified matrix, where it was asked for. */
  lora?: LoraLikeness;
  /** Why a matrix has neither stable rank nor spectrum. */
  spectrumFailed?: string;
  seconds: number;
}

/** ‖Δ‖ of the rows of a tensor. */
export interface RowNorms {
  count: number;
  min: number;
  mean: number;
  max: number;
  /** Root mean square over at most 64 runs of consecutive rows, for a strip. */
  strip: number[];
}

/** How much Δ looks like a matrix of low rank. */
export interface LoraLikeness {
  /** The largest singular values, descending, at most 64. */
  singularValues: number[];
  /** Number of σ > 1e-5, in absolute terms. */
  effectiveRank: number;
  /** Smallest k with Σ_{i≤k} σᵢ² ≥ 0.95 · ‖Δ‖². */
  rank95: number;
  /** The values found end before the answer: the true number is at least this. */
  effectiveRankIsBound: boolean;
  rank95IsBound: boolean;
  /** rank95 < 64 and rank95 < 0.1 · min(shape). */
  potentialLora: boolean;
  /** Decomposed exactly, not by a random sketch. */
  exact: boolean;
}

export interface CompareReport {
  base: string;
  finetuned: string;
  engine: BackendKind;
  adapter: string;
  version: string;
  seconds: number;
  stages: WorkSeconds;
  threshold: number;
  total: {
    elements: number;
    normBase: number;
    normDelta: number;
    relative: number;
    changedRatio: number;
    bitDifferentRatio: number;
    /** Numbers of tensors. */
    compared: number;
    modified: number;
    identical: number;
  };
  /** In natural order. */
  tensors: TensorDifference[];
  /** Names by descending relative difference. */
  ranking: string[];
  top: number;
  onlyInBase: string[];
  onlyInFinetuned: string[];
  shapeMismatches: { name: string; base: number[]; finetuned: number[] }[];
  /** Tensors that are not computed with, byte by byte. */
  raw: { name: string; dtype: { base: string; finetuned: string }; identical: boolean }[];
  failed: { name: string; code: ErrorCode; message: string; hint: string }[];
  config: ConfigComparison;
  architecture: ArchitectureComparison;
  tokenizer: TokenizerComparison;
  timing?: EngineTiming;
  /** The findings as sentences. */
  words: string[];
  /** Files written, where there is a destination. */
  files: string[];
}

export interface ConfigComparison {
  differences: ConfigDifference[];
  words: string[];
}

export interface ConfigDifference {
  /** Path of the field, parts joined by dots. */
  field: string;
  /** JSON text of the value, null where the field is absent. */
  base: string | null;
  finetuned: string | null;
  /** The same setting in another spelling, or a field that does not change what a model computes. */
  harmless: boolean;
}

export interface ArchitectureComparison {
  base: ArchitectureInfo;
  finetuned: ArchitectureInfo;
  words: string[];
}

export interface ArchitectureInfo {
  modelType: string | null;
  architectures: string[];
  layers: number;
  hiddenSize: number | null;
  intermediateSize: number | null;
  attentionHeads: number | null;
  keyValueHeads: number | null;
  vocabularySize: number | null;
  tiedHead: boolean;
  tensors: number;
  parameters: number;
  /** Dtype → number of tensors. */
  dtypes: Record<string, number>;
}

export interface TokenizerComparison {
  /** `same-file`: byte for byte; `same-tokens`: every token has the same id and text is split alike; `unknown`: cannot be told. */
  verdict: 'same-file' | 'same-tokens' | 'different' | 'unknown';
  vocabulary: { base: number; finetuned: number } | null;
  /** Tokens of one side only and tokens with another id, with a few of them. */
  onlyInBase: TokenSample;
  onlyInFinetuned: TokenSample;
  moved: TokenSample;
  words: string[];
}

export interface TokenSample {
  count: number;
  examples: string[];
}

/** Both engines over the same tensors. */
export interface EngineTiming {
  /** Seconds of upload, kernels and readback, reading excluded. */
  webgpu: number;
  cpu: number;
  /** cpu / webgpu. */
  speedUp: number;
  /** Largest difference of any sum relative to its size; 0 when both agree to the bit. */
  maxDisagreement: number;
  tensors: { name: string; webgpu: number; cpu: number }[];
}

// ---------------------------------------------------------------- extract a LoRA

/** How many singular values of each module are kept. */
export type RankChoice =
  | { kind: 'rank'; rank: number }
  /** Smallest rank with Σσ² ≥ share · ‖Δ‖². */
  | { kind: 'energy'; share: number }
  /** All σᵢ ≥ ratio · σ₁. */
  | { kind: 'cutoff'; ratio: number }
  /** What captures most of Σσ² in so many bytes of adapter weights. */
  | { kind: 'bytes'; bytes: number };

export interface ExtractLoraRequest {
  base: string;
  finetuned: string;
  engine: BackendChoice;
  destination: DestinationSpec;
  rank: RankChoice;
  /** Most singular values of one module, for energy, cutoff and bytes. Default 128. */
  maxRank?: number;
  /** Parts of module paths: modules with any of `include` (default all) and none of `exclude` are carried. */
  include?: string[];
  exclude?: string[];
  /** Changed embeddings and heads: whole (`modules_to_save`), as factors, or left out. Default `save`. */
  embeddings?: 'save' | 'lora' | 'skip';
  /** Changed norms and other vectors: whole or left out. Default `save`. */
  vectors?: 'save' | 'skip';
  /** Dtype of the factors. Default `F32`. */
  dtype?: 'F32' | 'F16' | 'BF16';
  /** A text or ids on which base, base with adapter and fine-tune are run. Default: none of them is. */
  evaluation?: { text: string } | { ids: number[] };
  /** Seed of the randomized decompositions. Default 0. */
  seed?: number;
  tileElements?: number;
}

/** A module of the adapter with its factors. */
export interface ExtractedModule {
  /** Path as PEFT names it. */
  module: string;
  kind: 'linear' | 'embedding';
  /** Shape of the stored weight. */
  shape: number[];
  rank: number;
  /** Smaller side: the rank at which nothing is lost. */
  fullRank: number;
  normDelta: number;
  /** The largest singular values, descending, at most 64. */
  singularValues: number[];
  /** Decomposed exactly, not by a random sketch. */
  exact: boolean;
  /** ‖finetuned − (base + B·A)‖ / ‖Δ‖ after merging what is written, in f32; null where the merge is not finite. */
  error: number | null;
  /** Largest |finetuned − (base + B·A)|, null likewise. */
  maxError: number | null;
}

export interface ExtractLoraReport {
  base: string;
  finetuned: string;
  engine: BackendKind;
  adapter: string;
  version: string;
  seconds: number;
  stages: WorkSeconds;
  rank: RankChoice;
  modules: ExtractedModule[];
  /** Tensors the adapter carries whole. */
  saved: { name: string; shape: number[]; bytes: number }[];
  /** Changes the adapter does not carry, and why. */
  left: { name: string; normDelta: number | null; why: string }[];
  /** After merging the written adapter into the base: over all tensors both models have. */
  merged: {
    /** ‖finetuned − merged‖ / ‖Δ‖ */
    error: number;
    /** ‖finetuned − merged‖ / ‖finetuned‖ */
    relative: number;
    maxError: number;
    /** Tensors whose merge is not finite, which count in none of these. */
    failed: { name: string; message: string }[];
  };
  parameters: number;
  /** Of all three on the same text, where one was given. */
  perplexity?: { base: EvaluateReport; adapted: EvaluateReport; finetuned: EvaluateReport };
  files: { file: string; bytes: number; hash?: string }[];
  /** What else is worth knowing, as sentences. */
  notes: string[];
}
