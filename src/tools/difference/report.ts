/** Requests and reports of the difference of two models: plain data for the worker boundary. */

import type { ErrorCode } from '../../errors';
import type { BackendChoice } from '../../reports/backend';
import type { DestinationSpec, JobReport, Progress } from '../../reports/job';
import type { ConfigComparison } from '../../reports/models';

/** Progress of comparing and extracting. */
export interface CompareProgress extends Omit<Progress, 'phase' | 'finished'> {
  phase: 'downloading' | 'comparing' | 'decomposing' | 'extracting' | 'checking';
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
  /** Whether modified matrices look like a LoRA: spectra of those that may. Default true. */
  loraAnalysis?: boolean;
  /** Spectra and stable ranks of all matrices. Default false. */
  allSpectra?: boolean;
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
  /** ‖Δ‖² / σ₁²; 0 without a change, null unless it is a matrix whose spectrum was made. */
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
  /** The largest singular values, descending, at most 64; none where blocks of Δ prove that it looks like no LoRA. */
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

export interface CompareReport extends JobReport {
  base: string;
  finetuned: string;
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
  onlyInBase: string[];
  onlyInFinetuned: string[];
  shapeMismatches: { name: string; base: number[]; finetuned: number[] }[];
  /** Tensors that are not computed with, byte by byte. */
  raw: { name: string; dtype: { base: string; finetuned: string }; identical: boolean }[];
  failed: { name: string; code: ErrorCode; message: string; hint: string }[];
  config: ConfigComparison;
  architecture: ArchitectureComparison;
  tokenizer: TokenizerComparison;
  /** The findings as sentences. */
  words: string[];
  /** Files written, where there is a destination. */
  files: string[];
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
  /**
   * `same-file`: byte for byte; `same-tokens`: every token has the same id and text is split alike; `unknown`: not
   * determined.
   */
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
