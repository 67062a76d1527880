/** A mixture of experts across the worker boundary. */
import type { BackendChoice } from '../../reports/backend';
import type { DestinationSpec } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { OptionValues } from '../../reports/option';
import type { PlanReport } from '../../reports/plan';
import type { moeOptions } from './options';
import type { MoeRecipe } from './recipe';

export interface MoePlanRequest {
  /** Of opened models. */
  recipe: MoeRecipe;
  form: Omit<OptionValues<typeof moeOptions>, 'recipe'>;
  engine: BackendChoice;
}

export interface MoeRequest extends MoePlanRequest {
  destination: DestinationSpec;
  /** Continues an interrupted one at the destination. */
  resume?: boolean;
}

export interface MoeFigures {
  /** Name of the output form: `Mixtral`. */
  title: string;
  experts: number;
  expertsPerToken: number;
  /** Of all, and of those that a token runs through. */
  parameters: { all: number; active: number };
}

/** What will be written, from headers alone. */
export interface MoePlanReport extends PlanReport, MoeFigures {}

export interface MoeReport extends Omit<MergeReport, 'recipe' | 'recipeSha256'> {
  /** The recipe as it lies beside the model. */
  recipe: string;
  figures: MoeFigures;
  notes: string[];
  files: string[];
}
