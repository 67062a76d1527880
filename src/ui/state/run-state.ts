/** A merge of the studio, and what is kept of it. Plain, serialisable facts. */

import type { ErrorReport } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import type { BackendKind } from '../../reports/backend';
import type { Progress, TensorReport } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { PlanTensor } from '../../reports/plan';
import type { Settings } from './recipe-state';

/** Id of the run of the recipe as it is. */
export const NOW = 'now';

export interface RunState {
  /** Counts up; tells two runs of one recipe apart. */
  id: number;
  status: 'running' | 'done' | 'failed' | 'cancelled';
  title: string;
  methodTitle: string;
  recipe: Recipe;
  contributors: Contributor[];
  /** Structure of the output, from the plan. */
  planned: PlanTensor[];
  layers: number;
  destination: { kind: 'downloads' | 'folder'; name: string; folder: string | null };
  outputFiles: string[];
  startedAt: number;
  progress: Omit<Progress, 'finished'> | null;
  /** Reports of the tensors finished so far, in the order they finished. */
  tensors: TensorReport[];
  log: LogEntry[];
  report: MergeReport | null;
  error: ErrorReport | null;
  /** It was brought back from the history: its files may be gone. */
  again?: true;
  /** It was stopped to go on later. */
  paused?: true;
  /** Methods are compared for it, and the best is merged. */
  recommended?: true;
  /** Then: the output's name by the method that is chosen, unless a person chose one. */
  names?: Readonly<Record<string, string>>;
  /** The predicted run that it merges; else the recipe. */
  of?: string;
}

/** A contributor as charts show it: kept with a plan or a run, so that later edits change neither name nor colour. */
export interface Contributor {
  /** What the recipe, plan and report call it, e.g. `samples/base+samples/kitchen`. */
  id: string;
  label: string;
  colour: number;
}

export interface LogEntry {
  /** Seconds since the run began. */
  at: number;
  tone: 'plain' | 'good' | 'bad';
  text: string;
}

/** A run of the Layers tab that is only predicted: other settings for the models of the recipe. */
export interface PredictedRun {
  id: string;
  /** The models it is of (`deltaKey`): it is not shown for others. */
  of: string;
  /** Given by a person; else it is called what it differs by. */
  name: string | null;
  method: string;
  parameters: Settings;
  seed: number;
  /** Settings of every model by its id (`contributorId`). */
  models: Readonly<Record<string, Settings>>;
}

export interface Verification {
  /** Of the report that was verified. */
  recipeSha256: string;
  first: Timed;
  second: Timed;
  /** Files whose bytes are not the same. */
  differing: string[];
  /** Tensors whose numbers differ in the reports: where to look. */
  tensors: string[];
}

export interface Timed {
  engine: BackendKind;
  seconds: number;
  /** Bytes of weights written. */
  bytes: number;
}

/** What is known of a run before it runs. */
export type RunPlan = Pick<
  RunState,
  'title' | 'methodTitle' | 'recipe' | 'contributors' | 'planned' | 'layers' | 'destination' | 'outputFiles'
>;

export interface KeptRun extends RunPlan, Pick<RunState, 'startedAt'> {
  /** Unique in this browser. */
  id: string;
  /** Given by a person; else it is called what it differs by. */
  name?: string;
  /** The recipe as it was asked for: its λ may be left to a search. Older ones have none. */
  asked?: Recipe;
  report: MergeReport;
}
