/** What the Compare tab knows: the pair, the choices, what was found. Plain, serialisable facts. */

import { compareOptions } from '../../tools/difference/options';
import { extractOptions } from '../../tools/extract/options';
import type {
  CompareReport,
  ExtractLoraReport,
  ExtractLoraRequest,
  TensorDifference,
} from '../../tools/difference/report';
import { defaultsOf } from '../../reports/option';
import type { PlanTensor } from '../../reports/plan';
import type { WritingRun } from '../state/job-state';

export type DifferenceMetricId =
  | 'relative'
  | 'meanAbs'
  | 'maxAbs'
  | 'changedRatio'
  | 'cosine'
  | 'signFlipRatio'
  | 'bitDifferentRatio';

export interface ComparisonSlice {
  /** References as the person chose them; null: what the recipe suggests. */
  base: string | null;
  finetuned: string | null;
  mode: 'difference' | 'extract';
  /** An element with |Δ| above it counts as changed. */
  threshold: number;
  /** Rows of the tables of most changed tensors. */
  top: number;
  spectra: boolean;
  timeEngines: boolean;
  metric: DifferenceMetricId;
  scale: 'full' | 'fit';
  found: Comparison | null;
  choices: ExtractChoices;
  extraction: Extraction | null;
}

/** A comparison at work, or the last one. */
export interface Comparison extends WritingRun<CompareReport> {
  base: string;
  finetuned: string;
  /** Tensors of the base: the rows and columns of the chart, before anything is measured. */
  planned: PlanTensor[];
  /** In the order they finished; in natural order once done. */
  tensors: TensorDifference[];
  threshold: number;
}

export interface ExtractChoices {
  by: 'rank' | 'energy' | 'cutoff' | 'bytes';
  rank: number;
  /** Share of ‖Δ‖² that must be kept. */
  energy: number;
  /** Relative to the largest singular value. */
  cutoff: number;
  megabytes: number;
  /** Most singular values of one module, where the rank is not given by number. */
  maxRank: number;
  /** Parts of module paths, separated by commas or blanks. */
  include: string;
  exclude: string;
  embeddings: 'save' | 'lora' | 'skip';
  vectors: 'save' | 'skip';
  dtype: NonNullable<ExtractLoraRequest['dtype']>;
  /** Id of the text on which base, adapter and fine-tune are run. */
  textId: string | null;
}

export interface Extraction extends WritingRun<ExtractLoraReport> {
  base: string;
  finetuned: string;
}

const { loraAnalysis, ...comparing } = defaultsOf(compareOptions);
const { seed: _, ...extracting } = defaultsOf(extractOptions);

export const initialComparison: ComparisonSlice = {
  base: null,
  finetuned: null,
  mode: 'difference',
  ...comparing,
  spectra: loraAnalysis,
  metric: 'relative',
  scale: 'full',
  found: null,
  choices: {
    by: 'rank',
    rank: 8,
    energy: 0.95,
    cutoff: 0.01,
    megabytes: 10,
    ...extracting,
    include: '',
    exclude: '',
    textId: null,
  },
  extraction: null,
};
