/** What crosses the worker boundary for collapsing layers, as plain serialisable data. Layers are counted from 0. */
import type { BackendChoice, BackendKind } from './backend';
import type { EvaluateReport } from './evaluate';
import type { DestinationSpec, Progress, WorkSeconds } from './job';
import type { MergeReport } from './merge';

/**
 * What becomes of a layer l and the m layers behind it, which are removed.
 * `rdsc`: θ_l + Σ_{k=1..m} (θ_{l+k} − θ_l), as in the LaCo paper. `replace-last`: θ_{l+m}, which is what LaCo's own code
 * computes. `mean`: the mean of all m + 1. `drop`: θ_l as it is.
 */
export type CollapseVariant = 'rdsc' | 'replace-last' | 'mean' | 'drop';

/**
 * Which tensors take part: `full` all; `linear` the linear layers of attention and MLP with their biases, norms staying
 * those of layer l; `attention` and `mlp` the linear layers of one of them. The rest stays as it is in layer l.
 */
export type CollapseParts = 'full' | 'linear' | 'attention' | 'mlp';

/** Texts, each run by itself with what its tokenizer puts in front, or ids as they are. */
export type CalibrationInput = { texts: string[] } | { ids: number[] };

export interface Calibration {
  input: CalibrationInput;
  /** Tokens run at once; longer texts are cut into windows that do not overlap. Default 256. */
  window?: number;
}

/** How many layers go: their number, or a share of all. */
export type DepthTarget = { remove: number } | { ratio: number };

export type CollapsePlanner =
  | {
      /** LaCo's greedy loop, from the top down. */
      kind: 'laco';
      /** Layers that become one, ≥ 2. Default 3. */
      block?: number;
      /** Layers between which blocks are tried. Default all. */
      lowest?: number;
      highest?: number;
      /** Layers to go down after a block was collapsed. Default 2. */
      interval?: number;
      /** A block is collapsed when the similarity to the original stays above it. Default 0.75. */
      threshold?: number;
      /** Ends the loop when so many layers are gone. */
      target?: DepthTarget;
    }
  /** ShortGPT: the layers of least block influence; all below a threshold, or so many. */
  | { kind: 'influence'; target: DepthTarget | { threshold: number } }
  /** PruneMe: the block at least angular distance; of so many layers, or the longest within a threshold. */
  | { kind: 'angular'; target: DepthTarget | { threshold: number }; tokens?: 'last' | 'all' }
  | { kind: 'manual'; remove: number[] };

export interface CollapseProgress extends Omit<Progress, 'phase' | 'finished'> {
  /** While measuring, searching and evaluating `tensors` counts the passes of a layer over the texts. */
  phase: 'downloading' | 'measuring' | 'searching' | 'evaluating' | 'hashing' | 'writing';
  /** Steps of the search since the last message. */
  finished: CollapseStep[];
}

// ---------------------------------------------------------------- measure

export interface MeasureDepthRequest {
  /** Model reference, `path[@revision][+adapter[@revision]]`. */
  model: string;
  engine: BackendChoice;
  calibration: Calibration;
  /** Also the similarity that is left when one block is collapsed, for every place of the block. */
  curve?: { block: number; variant: CollapseVariant; parts: CollapseParts };
}

/** Figures of the residual stream: x_0 enters layer 0, x_i leaves layer i − 1; all before the final norm. */
export interface DepthMeasure {
  /** Block influence of each layer: mean over all tokens of 1 − cos(x_i, x_{i+1}). */
  influence: number[];
  /** [i][j]: arccos(cos(x_i, x_j)) / π, symmetric, (layers + 1)². */
  distance: {
    /** Mean over the last tokens of whole windows (of all windows, where none is whole). */
    lastToken: number[][];
    /** Mean over all tokens. */
    allTokens: number[][];
  };
}

export interface MeasureDepthReport extends DepthMeasure {
  model: string;
  engine: BackendKind;
  adapter: string;
  seconds: number;
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
  planner: CollapsePlanner;
  /** Default `rdsc` for `laco`, else `drop`. */
  variant?: CollapseVariant;
  /** Default `linear`. */
  parts?: CollapseParts;
  /** Needed by all planners but `manual`. */
  calibration?: Calibration;
  /** What perplexity is measured on before and after. Default: the calibration text; null: not at all. */
  evaluation?: { text: string } | { ids: number[] } | null;
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

/** A layer of the result: Σ coefficient · θ_layer over layers of the original, for each part. */
export interface CollapsedLayer {
  /** The layer whose place it takes; what no part names stays as it is there. */
  origin: number;
  attention: LayerTerm[];
  mlp: LayerTerm[];
  norm: LayerTerm[];
}

export interface LayerTerm {
  layer: number;
  coefficient: number;
}

export interface CollapseReport {
  model: string;
  engine: BackendKind;
  adapter: string;
  version: string;
  seconds: number;
  stages: WorkSeconds;
  planner: CollapsePlanner;
  variant: CollapseVariant;
  parts: CollapseParts;
  layers: { before: number; after: number };
  parameters: { before: number; after: number };
  /** Layers of the original that have no place of their own in the result. */
  removed: number[];
  stack: CollapsedLayer[];
  /** What the greedy loop tried, in order. */
  steps: CollapseStep[];
  /** What the planner measured. */
  measure: DepthMeasure | null;
  calibration: CalibrationInfo | null;
  /** Of the written model to the original: the mean, and each sequence. */
  similarity: { mean: number; sequences: number[] } | null;
  perplexity: { before: EvaluateReport; after: EvaluateReport } | null;
  inputs: MergeReport['inputs'];
  shards: MergeReport['shards'];
  /** The other files written: config, tokenizer, card, index. */
  files: string[];
  /** What else is worth knowing, as sentences. */
  notes: string[];
}
