/** Requests and reports of another tokenizer for a model: plain data for the worker boundary. */
import type { BackendChoice } from '../../reports/backend';
import type { DestinationSpec, JobReport, Progress } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { TransplantForm } from './options';

export interface TransplantProgress extends Omit<Progress, 'phase' | 'finished'> {
  /** `fitting` counts bytes of the donor's rows. */
  phase: Progress['phase'] | 'fitting' | 'evaluating';
  finished: never[];
}

export interface PlanTransplantRequest {
  /** Model reference, `path[@revision][+adapter[@revision]]`. */
  model: string;
  /** Model whose tokenizer the output gets. */
  donor: string;
  form: TransplantForm;
  engine: BackendChoice;
}

export interface TransplantRequest extends PlanTransplantRequest {
  destination: DestinationSpec;
  /** Texts that the model is measured on before and after; absent or none: it is not. */
  texts?: string[];
  /** Largest output shard in bytes. Default 2 000 000 000. */
  shardBytes?: number;
  /** Elements of one tile; tests vary it. */
  tileElements?: number;
}

/** What will be done, from headers and tokenizers alone. */
export interface TransplantPlan {
  model: string;
  donor: string;
  form: TransplantForm;
  /** Rows of embedding and head. */
  rows: { before: number; after: number };
  /** Tokens of the output: those that have a row of the model, special ones among them, and those whose row is made. */
  tokens: { shared: number; special: number; new: number };
  /** Shared tokens that rows can be made of; 0 where none are. */
  landmarks: number;
  /** Of making the rows. */
  multiplyAdds: number;
  /** Seconds that takes, by a moment's work on this engine. */
  seconds: number;
  peakBytes: number;
  bytesToRead: number;
  bytesToWrite: number;
  notes: string[];
}

/** Bits per byte of the texts, and half the width of the interval that holds the true value in 95 of 100 cases. */
export interface Quality {
  bitsPerByte: number;
  margin: number | null;
  perplexity: number;
  tokens: number;
}

export interface TransplantReport
  extends Omit<TransplantPlan, 'seconds' | 'bytesToRead' | 'bytesToWrite'>,
    Pick<MergeReport, 'inputs' | 'shards'>,
    JobReport {
  /** Of making the rows. */
  fitSeconds: number;
  /** Mean of what the donor's new rows keep unmade, as a share of their norm; by tensor, where rows are fitted. */
  left: { tensor: string; mean: number }[];
  quality: { before: Quality; after: Quality } | null;
  /** All files written, shards first. */
  files: string[];
}

/** `1.2345 ± 0.0067 bits per byte` */
export function qualityWords({ bitsPerByte, margin }: Quality): string {
  return `${bitsPerByte.toFixed(4)}${margin === null ? '' : ` ± ${margin.toFixed(4)}`} bits per byte`;
}
