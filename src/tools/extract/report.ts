/** Requests and reports of extracting a LoRA: plain data for the worker boundary. */
import type { BackendChoice, BackendKind } from '../../reports/backend';
import type { DestinationSpec, WorkSeconds } from '../../reports/job';

/** Choice of the rank of each module. */
export type RankChoice =
  | { kind: 'rank'; rank: number }
  /** Smallest rank with Σσ² ≥ share · ‖Δ‖². */
  | { kind: 'energy'; share: number }
  /** All σᵢ ≥ ratio · σ₁. */
  | { kind: 'cutoff'; ratio: number }
  /** Ranks that capture most of Σσ² in so many bytes of adapter weights. */
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
  /** ‖finetuned − (base + B·A)‖ / ‖Δ‖ of the written adapter merged in f32; null where the merge is not finite. */
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
  files: { file: string; bytes: number; hash?: string }[];
  /** Other remarks, as sentences. */
  notes: string[];
}
