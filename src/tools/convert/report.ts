/** Conversion of one model across the worker boundary. */
import type { BackendChoice } from '../../reports/backend';
import type { DestinationSpec } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { OptionValues } from '../../reports/option';
import type { convertOptions } from './options';

export interface ConvertRequest {
  /** `path` or `base+adapter`, which becomes one model. */
  model: string;
  form: OptionValues<typeof convertOptions>;
  engine: BackendChoice;
  destination: DestinationSpec;
}

/** The report of the merge that wrote it, what is to be known of the model, and the names of all files. */
export type ConvertReport = MergeReport & { notes: string[]; files: string[] };
