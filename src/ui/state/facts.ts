/**
 * Everything the studio knows, as serialisable facts. The worker is the truth; this mirrors what it said. No handles,
 * buffers or promises live here.
 */

import type { ErrorFacts } from '../../errors';
import { DEFAULT_HUB_URL } from '../../formats/hub-id';
import type { Recipe } from '../../formats/recipe';
import type { Progress, TensorReport } from '../../reports/job';
import type { InterruptedRun, MergeReport, MergeRequest, RunElsewhere } from '../../reports/merge';
import type { ModelFacts } from '../../reports/models';
import type { PlanFacts, PlanTensorFacts } from '../../reports/plan';
import type { HubWait } from '../../reports/sign-in';
import type { WorkerFacts } from '../../worker/api';
import type { MetricId } from '../charts/metrics';
import { type CollapseSlice, initialCollapse } from '../collapse/collapse-facts';
import { type ComparisonSlice, initialComparison } from '../compare/compare-facts';
import type { KeptRun } from '../local/run-shelf';
import { initialPush, type PushSlice } from '../push/push-facts';
import { type DeltaStatisticsSlice, noDeltas } from './delta-statistics';
import {
  type EvaluationSlice,
  type GenerationSlice,
  initialEvaluation,
  initialGeneration,
} from './evaluation-facts';
import type { Pins } from './model-origins';
import type { PinnedLayers } from './pin';
import { emptyRecipe, type RecipeFacts } from './recipe-facts';
import { type HistorySlice, noHistory } from './recipe-history';
import type { LogEntry } from './run-log';
import type { TensorCheck } from './tensor-check';
import type { ToolJob } from './tool-job';
import type { Verification } from './verification';

export interface StudioFacts {
  engine: EngineSlice;
  /** Every model opened in this tab, the sample first. */
  models: ModelFacts[];
  /** What is being opened right now, in words. */
  opening: string[];
  /** Models that the recipe names and that are not open, by their names. */
  unopened: Readonly<Record<string, Unopened>>;
  recipe: RecipeFacts;
  history: HistorySlice;
  plan: PlanSlice;
  profile: DeltaStatisticsSlice;
  /** What the Layers tab holds for comparison. */
  pinned: PinnedLayers | null;
  output: OutputSlice;
  /** The run at work, else the last one. */
  run: RunFacts | null;
  /** Finished merges of before, the newest first. */
  pastRuns: readonly KeptRun[];
  /** What the other engine made of the last run that was verified. */
  verification: Verification | null;
  /** What the engines made of one tensor. */
  tensorCheck: TensorCheck | null;
  /** Merges that were cut off and can go on. */
  interrupted: InterruptedRun[];
  /** The merge of another tab. */
  elsewhere: RunElsewhere | null;
  evaluation: EvaluationSlice;
  generation: GenerationSlice;
  comparison: ComparisonSlice;
  collapse: CollapseSlice;
  push: PushSlice;
  /** The job of Compare, Collapse or Output at work. */
  tool: ToolJob | null;
  hub: HubSlice;
  /** What is waited for before the hub is asked again. */
  hubWaits: HubWait[];
  /** A new version of the app waits to be taken. */
  update: boolean;
  view: ViewSlice;
  notices: Notice[];
}

export interface EngineSlice {
  status: 'starting' | 'ready' | 'failed';
  facts: WorkerFacts | null;
  error: ErrorFacts | null;
  choice: BackendChoice;
}

export interface PlanSlice {
  /** `empty`: the facts are not a recipe yet. `stale`: being computed again; `facts` is of the recipe before. */
  status: 'empty' | 'stale' | 'ready' | 'failed';
  facts: PlanFacts | null;
  /** Who the indices in `facts.tensors[].contributors` are. */
  contributors: Contributor[];
  error: ErrorFacts | null;
}

export interface OutputSlice {
  kind: 'downloads' | 'folder';
  /** Name of the picked folder; its handle stays outside the state. */
  folder: string | null;
  /** Name of the output, once the person chose one; else it follows the recipe. */
  name: string | null;
}

export interface RunFacts {
  /** Counts up; tells two runs of one recipe apart. */
  id: number;
  status: 'running' | 'cancelling' | 'done' | 'failed' | 'cancelled';
  title: string;
  methodTitle: string;
  recipe: Recipe;
  contributors: Contributor[];
  /** Structure of the output, from the plan. */
  planned: PlanTensorFacts[];
  layers: number;
  destination: { kind: 'downloads' | 'folder'; name: string; folder: string | null };
  outputFiles: string[];
  startedAt: number;
  progress: Omit<Progress, 'finished'> | null;
  /** Reports of the tensors finished so far, in the order they finished. */
  tensors: TensorReport[];
  log: LogEntry[];
  report: MergeReport | null;
  error: ErrorFacts | null;
  /** It was brought back from the history: its files may be gone. */
  again?: true;
  /** It was stopped to go on later. */
  paused?: true;
}

/** A contributor as charts show it: kept with a plan or a run, so that later edits change neither name nor colour. */
export interface Contributor {
  /** What the recipe, plan and report call it, e.g. `samples/base+samples/kitchen`. */
  id: string;
  label: string;
  colour: number;
}

export interface HubSlice {
  url: string;
  /** The token itself is with the worker only. */
  hasToken: boolean;
  /** Name of the account that signed in; null for a token that was pasted, and without one. */
  signedInAs: string | null;
  /** Waits for the person to agree in the hub's window. */
  signingIn: boolean;
  online: boolean;
  /** Names as they were asked for, with the pinned ones they were opened under. */
  pins: Pins;
}

/** Why a model of the recipe is not open. */
export type Unopened =
  | { state: 'opening' }
  /** A folder of this computer. @param kept one click opens it again */
  | { state: 'closed'; kept: boolean }
  /** A text names it: it may be a folder, or on the Hub. */
  | { state: 'unknown' }
  | { state: 'failed'; error: ErrorFacts };

export type BackendChoice = MergeRequest['engine'];
export type Tab = 'recipe' | 'plan' | 'layers' | 'run' | 'evaluate' | 'compare' | 'collapse' | 'output';
export type Theme = 'system' | 'light' | 'dark';
/** `shelf`: opened only, to be compared or collapsed. */
export type AddTarget = 'base' | 'contributor' | 'shelf';

export type RecipeAs = 'form' | 'text' | 'both';

export interface ViewSlice {
  tab: Tab;
  theme: Theme;
  /** The open dialog adds to this place. */
  adding: AddTarget | null;
  /** The dialog of whole recipes shows examples, or saved ones. */
  recipes: 'examples' | 'saved' | null;
  /** How the recipe is shown; where there is no room for both, `both` is the text. */
  recipeAs: RecipeAs;
  metric: MetricId;
  scale: 'full' | 'fit';
  /** Name of the tensor in the inspector. */
  selected: string | null;
  /** Name of the tensor under the pointer or the focus. */
  hovered: string | null;
}

export interface Notice {
  id: number;
  tone: 'error' | 'note';
  message: string;
  hint: string;
}

export const initialFacts: StudioFacts = {
  engine: { status: 'starting', facts: null, error: null, choice: 'auto' },
  models: [],
  opening: [],
  unopened: {},
  recipe: emptyRecipe,
  history: noHistory,
  plan: { status: 'empty', facts: null, contributors: [], error: null },
  profile: noDeltas,
  pinned: null,
  output: { kind: 'downloads', folder: null, name: null },
  run: null,
  pastRuns: [],
  verification: null,
  tensorCheck: null,
  interrupted: [],
  elsewhere: null,
  evaluation: initialEvaluation,
  generation: initialGeneration,
  comparison: initialComparison,
  collapse: initialCollapse,
  push: initialPush,
  tool: null,
  hub: { url: DEFAULT_HUB_URL, hasToken: false, signedInAs: null, signingIn: false, online: true, pins: {} },
  hubWaits: [],
  update: false,
  view: {
    tab: 'layers',
    theme: 'system',
    adding: null,
    recipes: null,
    recipeAs: 'form',
    metric: 'mergedSparsity',
    scale: 'full',
    selected: null,
    hovered: null,
  },
  notices: [],
};
