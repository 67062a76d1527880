/** The plan as the window sees it. */
import type { FamilyMember } from '../formats/model-family';

export interface PlanReport {
  problems: PlanProblem[];
  /** Settings of the recipe that mean something else in mergekit, and their effect there. */
  elsewhere?: { setting: string; consequence: string }[];
  /** True when nothing in `problems` is an error. */
  clean: boolean;
  tensors: PlanTensor[];
  contributors: string[];
  base?: string;
  bytesToDownload: number;
  bytesToRead: number;
  bytesToWrite: number;
  peakBytes: number;
  outputFiles: string[];
  layers: number;
  /** Of a recipe with stages: their plans, in order. `problems` and the numbers of bytes above include them. */
  stages?: { name: string; report: PlanReport }[];
  /** What passing inputs by takes; absent where nothing has to be downloaded. */
  stream?: StreamReport;
  /** Models on the Hub that are merged, and those that they come from; absent where none is from there. */
  family?: readonly FamilyMember[];
  /** Absent where the recipe cannot be planned that far. */
  vocabulary?: VocabularyInfo;
}

/** Inputs on the Hub that pass by a merge, stored nowhere. */
export interface StreamReport {
  /** Bytes of `bytesToDownload` that pass by instead. */
  bytes: number;
  /** Most bytes of them in memory, beside `peakBytes`. */
  memory: number;
  /** What is read a second time or more; `bytes` is null where it depends on what comes before. */
  again: { why: string; bytes: number | null }[];
}

export interface PlanProblem {
  severity: 'error' | 'warning' | 'note';
  code: string;
  /** Description of the problem, naming model and tensor. */
  message: string;
  /** Remedy that the person can apply. */
  remedy: string;
  tensors?: string[];
}

/** Outline of a tensor, known before any of its values is read. */
export interface TensorOutline {
  name: string;
  layer: number | null;
  /** What its layer is of, where a model counts several kinds of them: `input`, `text encoder`. */
  stack?: string;
  module: string;
  shape: number[];
  dtype: string;
  elements: number;
}

export interface PlanTensor extends TensorOutline {
  copied: boolean;
  /** The recipe's include and exclude leave it as the base has it. */
  leftOut?: boolean;
  /** Indices into `contributors` of the models that change this tensor. */
  contributors: number[];
}

/** The vocabularies of a plan, as plain data that crosses the worker's boundary. */

/** Vocabularies of the models, their differences, and the output's vocabulary. */
export interface VocabularyInfo {
  /** Rows of the embedding and tokens of the tokenizer, where they are known; the base first. */
  models: { ref: string; rows: number | null; tokens: number | null }[];
  /** How the others differ from the first, in sentences; empty where all agree. */
  words: string[];
  /** Source of the output's tokenizer, and its size; `tokens` is null where nothing was changed. */
  output: { from: string; tokens: number | null; rows: number | null };
}
