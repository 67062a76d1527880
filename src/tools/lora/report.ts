/** Requests and reports of extracting a LoRA: plain data for the worker boundary. */
import type { ImageConvention } from '../../formats/image-convention';
import type { BackendChoice } from '../../reports/backend';
import type { DestinationSpec, JobReport } from '../../reports/job';
import type { CutReport, MeasuredModule, RankChoice } from '../../reports/lora';

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

export interface ExtractLoraReport extends CutReport, JobReport {
  base: string;
  finetuned: string;
  files: { file: string; bytes: number; hash?: string }[];
}

/** One LoRA, or two models whose difference is looked at as one. */
export type MeasureLoraRequest = { engine: BackendChoice } & (
  | { lora: string }
  | { base: string; finetuned: string; include?: string[]; exclude?: string[]; seed?: number }
);

export interface MeasureLoraReport extends JobReport {
  modules: MeasuredModule[];
  /** What the config of a LoRA says of it. */
  facts: { label: string; value: string }[];
  notes: string[];
}

export interface ReshapeLoraRequest {
  /** `adapter` or `base+adapter`. */
  lora: string;
  engine: BackendChoice;
  destination: DestinationSpec;
  /** Null leaves the factors as they are. */
  rank: RankChoice | null;
  maxRank: number;
  include: string[];
  exclude: string[];
  scale: number;
  format: 'peft' | 'mlx' | 'gguf' | ImageConvention;
  dtype: 'F32' | 'F16' | 'BF16';
}
