/** The plan as the window sees it. */
import type { VocabularyInfo } from './vocabulary';

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
  shards: number;
  outputFiles: string[];
  layers: number;
  /** Of a recipe with stages: their plans, in order. `problems` and the numbers of bytes above include them. */
  stages?: { name: string; report: PlanReport }[];
  /** Absent where the recipe cannot be planned that far. */
  vocabulary?: VocabularyInfo;
}

export interface PlanProblem {
  severity: 'error' | 'warning' | 'note';
  code: string;
  /** Description of the problem, naming model and tensor. */
  message: string;
  /** Remedy that the person can apply. */
  remedy: string;
  tensors?: string[];
  /** Keys of the recipe's text that it is about. */
  keys?: string[];
}

/** Outline of a tensor, known before any of its values is read. */
export interface TensorOutline {
  name: string;
  layer: number | null;
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
