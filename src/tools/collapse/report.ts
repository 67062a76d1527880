/** Requests and reports of collapsing layers: plain data for the worker boundary. Layers are counted from 0. */
import type { BackendChoice, Computed } from '../../reports/backend';
import type { EvaluateReport } from '../../reports/evaluate';
import type { DestinationSpec, JobReport, Progress } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { Estimate } from '../../reports/paired-error';
import type { CollapseSettings, CollapseVariant } from './options';

/** Texts, each run separately with the special tokens of its tokenizer, or ids unchanged. */
type CalibrationInput = { texts: string[] } | { ids: number[] };

export interface Calibration {
  input: CalibrationInput;
  /** Tokens run at once; longer texts are cut into windows that do not overlap. */
  window: number;
}

export interface CollapseProgress extends Omit<Progress, 'phase' | 'finished'> {
  /** While measuring, searching and evaluating `tensors` counts the passes of a layer over the texts. */
  phase: Progress['phase'] | 'evaluating';
  /** Steps of the search since the last message. */
  finished: CollapseStep[];
}

// ---------------------------------------------------------------- measure

export interface MeasureLayersRequest {
  /** Model reference, `path[@revision][+adapter[@revision]]`. */
  model: string;
  engine: BackendChoice;
  calibration: Calibration;
  /** Also the similarity after collapsing one block, for every place of the block. */
  curve?: { block: number; variant: CollapseVariant };
}

/** Figures of the residual stream: x_0 enters layer 0, x_i leaves layer i − 1; all before the final norm. */
export interface LayerMeasure {
  /** Block influence of each layer: mean over all tokens of 1 − cos(x_i, x_{i+1}). */
  influence: number[];
  /**
   * [i][j]: arccos(cos(x_i, x_j)) / π, symmetric, (layers + 1)²: mean over the last tokens of whole windows (of all
   * windows, where none is whole).
   */
  distance: number[][];
}

export interface MeasureLayersReport extends LayerMeasure, Computed {
  model: string;
  layers: number;
  calibration: CalibrationInfo;
  /** Similarity with layers `layer` … `layer + block − 1` collapsed; null where the result is not finite. */
  curve?: { layer: number; similarity: number | null }[];
}

export interface CalibrationInfo {
  sequences: number;
  tokens: number;
  window: number;
}

// ---------------------------------------------------------------- collapse

export interface CollapseRequest {
  model: string;
  engine: BackendChoice;
  destination: DestinationSpec;
  settings: CollapseSettings;
  calibration: Calibration;
  /** Whether perplexity before and after is measured, on the calibration text. Default true. */
  perplexity?: boolean;
  /** Largest output shard in bytes. Default 2 000 000 000. */
  shardBytes?: number;
  /** Elements of one tile; tests vary it. */
  tileElements?: number;
}

/** A block that was tried. */
export interface CollapseStep {
  /** The layer, of the model as it was then, that takes the `count` layers behind it in. */
  layer: number;
  count: number;
  /** Mean cosine to the original; null where the collapsed model's numbers are not finite. */
  similarity: number | null;
  accepted: boolean;
  /** Layers of the model after this step. */
  layers: number;
}

/** A layer of the result. */
export interface CollapsedLayer {
  /** The layer whose place it takes; its norms stay. */
  origin: number;
  /** The linear layers of attention and MLP, with their biases: Σ coefficient · θ_layer over layers of the original. */
  terms: LayerTerm[];
  /** Its experts, where they are not all that it has. */
  experts?: CollapsedExpert[];
}

/** An expert of the result: Σ coefficient · expert, over those of the original. */
export interface CollapsedExpert {
  terms: { expert: number; coefficient: number }[];
}

export interface LayerTerm {
  layer: number;
  coefficient: number;
}

export interface CollapseReport extends JobReport {
  model: string;
  /** Settings with their defaults filled in. */
  settings: CollapseSettings & { variant: CollapseVariant };
  layers: { before: number; after: number };
  parameters: { before: number; after: number };
  /** Layers of the original that have no place of their own in the result. */
  removed: number[];
  stack: CollapsedLayer[];
  /** Attempts of the greedy loop, in order. */
  steps: CollapseStep[];
  /** Measurements of the planner; null for the greedy loop, which measures none, and for experts. */
  measure: LayerMeasure | null;
  /** Of each layer's experts, before and after; and their saliency by layer, where they have been chosen by it. */
  experts?: { before: number; after: number; saliency: number[][] };
  calibration: CalibrationInfo;
  /** Of the written model to the original: the mean, and each sequence. */
  similarity: { mean: number; sequences: number[] };
  perplexity: {
    before: EvaluateReport;
    after: EvaluateReport;
    /** Of the mean loss, on the same tokens. */
    change?: Estimate | null;
  } | null;
  inputs: MergeReport['inputs'];
  shards: MergeReport['shards'];
  /** All files written, shards first. */
  files: string[];
  /** Other remarks, as sentences. */
  notes: string[];
}
