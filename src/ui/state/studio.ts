import { createStore, type StoreApi } from 'zustand/vanilla';
import { type ErrorReport, errorReport } from '../../errors';
import { DEFAULT_HUB_URL } from '../../formats/hub-id';
import type { MergeMethod } from '../../merge/method';
import { methodById, methods } from '../../merge/methods/index';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { MergeRequest, RunElsewhere } from '../../reports/merge';
import type { ModelInfo } from '../../reports/models';
import type { PlanReport } from '../../reports/plan';
import type { HubWait } from '../../reports/push';
import { steadyTimeLeft } from '../../reports/time-left';
import type { WorkerInfo } from '../../reports/worker';
import type { Engine } from '../../worker/client';
import type { MetricId } from '../charts/metrics';
import { type GenerationSlice, initialGeneration } from './generation-state';
import { initialPush, initialTools, type Job, type PushSlice, type ToolsSlice } from './job-state';
import { initialMeasure, type MeasureSlice } from './measure-state';
import { type Pins, withOpened } from './model-origins';
import { emptyRecipe, type RecipeState } from './recipe-state';
import type { Contributor, Run } from './runs';
import type { Tab } from './tabs';

// State of the studio as serializable data. The worker is the truth; this mirrors its reports. No handles, buffers or
// promises live here.

export interface StudioState {
  measure: MeasureSlice;
  generation: GenerationSlice;
  tools: ToolsSlice;
  push: PushSlice;
  engine: EngineSlice;
  /** Every model opened in this tab, the sample first. */
  models: ModelInfo[];
  /** Names of the files being opened. */
  opening: string[];
  /** Models that the recipe names and that are not open, by their names. */
  unopened: Readonly<Record<string, Unopened>>;
  recipe: RecipeState;
  history: HistorySlice;
  plan: PlanSlice;
  deltaStatistics: DeltaStatisticsSlice;
  effects: EffectsSlice;
  /** Every run there is, whatever its status. */
  runs: readonly Run[];
  /** The run at work, else the last one. */
  currentRunId: string | null;
  /** Ids of runs that are merged next. */
  queuedRuns: readonly string[];
  output: OutputSlice;
  /** The merge of another tab. */
  elsewhere: RunElsewhere | null;
  /** The one job of the worker. */
  job: Job | null;
  hub: HubSlice;
  /** The merge on the Hub whose recipe a link asks for. */
  link: string | null;
  /** Waits before the next request to the hub. */
  hubWaits: HubWait[];
  /** A new version of the app waits to be taken. */
  update: boolean;
  view: ViewSlice;
  notices: Notice[];
}

export interface EngineSlice {
  status: 'starting' | 'ready' | 'failed';
  info: WorkerInfo | null;
  error: ErrorReport | null;
  choice: BackendChoice;
}

export interface PlanSlice {
  /** `empty`: the state is not a recipe yet. `stale`: being computed again; `report` is of the recipe before. */
  status: 'empty' | 'stale' | 'ready' | 'failed';
  report: PlanReport | null;
  /** Contributors by the indices in `report.tensors[].contributors`. */
  contributors: Contributor[];
  error: ErrorReport | null;
}

interface OutputSlice {
  kind: 'downloads' | 'folder';
  /** Name of the picked folder; its handle stays outside the state. */
  folder: string | null;
  /** Name of the output, once the user chose one; else it follows the recipe. */
  name: string | null;
  /** Inputs on the Hub pass by a merge, and are not kept. */
  streams: boolean;
}

interface HubSlice {
  url: string;
  /** The token itself is with the worker only. */
  hasToken: boolean;
  /** Name of the account that signed in; null for a token that was pasted, and without one. */
  signedInAs: string | null;
  /** Waits for the user to agree in the hub's window. */
  signingIn: boolean;
  online: boolean;
  /** Names as they were asked for, with the pinned ones they were opened under. */
  pins: Pins;
}

/** Why a model of the recipe is not open. */
export type Unopened =
  | { state: 'opening' }
  /** A folder of this computer. @param saved its handle is: one click opens it again */
  | { state: 'closed'; saved: boolean }
  /** A text names it: it may be a folder, or on the Hub. */
  | { state: 'unknown' }
  | { state: 'failed'; error: ErrorReport };

export type BackendChoice = MergeRequest['engine'];
export type Theme = 'system' | 'light' | 'dark';
/** `library`: opened only, to be compared or collapsed. */
export type AddTarget = 'base' | 'contributor' | 'library';

/** The tabs of whole recipes: examples, saved ones, or that of a merge on the Hub. */
export type RecipesTab = 'examples' | 'saved' | 'hub';
/** What opens above the page: models are added to a place, recipes, the report of the run, the list of actions. */
export type Dialog = AddTarget | RecipesTab | 'report' | 'palette';

export interface ViewSlice {
  tab: Tab;
  theme: Theme;
  dialog: Dialog | null;
  /** Id of the finished run that Merge would only repeat, once it was pressed. */
  repeated: string | null;
  /** Part of Files to be brought into sight when it is shown. */
  filesAt: 'gguf' | 'push' | null;
  /** How the recipe is shown. */
  recipeAs: 'form' | 'text';
  /** The recipe as text as it was typed, for as long as the recipe is the one that was read off it. */
  typed: { text: string; of: RecipeState } | null;
  /** The metric of Layers that was chosen; null: the one that it opened on. */
  metric: MetricId | null;
  /** The metric that Layers opened on, the most telling of the first numbers, and the one that a recipe lacks; null before. */
  opened: { metric: MetricId; insteadOf: MetricId | null } | null;
  /** Whose: ids of contributors, apart by a space; null: the first. */
  subject: string | null;
  /** Ids of the runs that Layers shows side by side, A first. */
  runs: readonly string[];
  /** The folded module whose experts are shown one by one. */
  expanded: string | null;
  /** Words that names of tensors have. */
  filter: string;
  /** Name of the tensor in the inspector. */
  selected: string | null;
  /** Name of the tensor under the pointer or the focus. */
  hovered: string | null;
}

export interface Notice {
  id: number;
  /** Cause: one notice each, gone when the cause is gone. */
  code: string;
  tone: 'error' | 'note';
  message: string;
  hint: string;
}

interface HistorySlice {
  /** Recipes before this one, the oldest first. */
  past: RecipeState[];
  /** Recipes that were undone, the next one last. */
  future: RecipeState[];
}

const noHistory: HistorySlice = { past: [], future: [] };

export interface DeltaStatisticsSlice {
  /** `offered`: it would take a download or a while, so the user is asked first. */
  status: 'none' | 'offered' | 'measuring' | 'ready' | 'failed';
  /** Which models were measured: {@link deltaKey}. */
  key: string;
  tensors: DeltaStatistics[];
  error: ErrorReport | null;
}

export const noDeltas: DeltaStatisticsSlice = {
  status: 'none',
  key: '',
  tensors: [],
  error: null,
};

/** Effects of the weights of runs on one text. */
export interface EffectsSlice {
  status: 'none' | 'measuring' | 'stopped';
  /** Which text: prompt and ids. */
  key: string;
  /** `effectsKey` of a recipe and whom it was measured without → name of a tensor → effect in nats. */
  ofRecipes: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Why a metric of a recipe was not measured. */
  failed: { of: string; error: ErrorReport } | null;
}

export const noEffects: EffectsSlice = { status: 'none', key: '', ofRecipes: new Map(), failed: null };

export const initialState: StudioState = {
  engine: { status: 'starting', info: null, error: null, choice: 'auto' },
  models: [],
  opening: [],
  unopened: {},
  recipe: emptyRecipe,
  history: noHistory,
  plan: { status: 'empty', report: null, contributors: [], error: null },
  deltaStatistics: noDeltas,
  effects: noEffects,
  runs: [],
  currentRunId: null,
  queuedRuns: [],
  output: { kind: 'downloads', folder: null, name: null, streams: false },
  elsewhere: null,
  measure: initialMeasure,
  generation: initialGeneration,
  tools: initialTools,
  push: initialPush,
  job: null,
  hub: { url: DEFAULT_HUB_URL, hasToken: false, signedInAs: null, signingIn: false, online: true, pins: {} },
  hubWaits: [],
  update: false,
  link: null,
  view: {
    tab: 'layers',
    theme: 'system',
    dialog: null,
    repeated: null,
    filesAt: null,
    recipeAs: 'form',
    typed: null,
    metric: null,
    opened: null,
    subject: null,
    runs: ['now'],
    expanded: null,
    filter: '',
    selected: null,
    hovered: null,
  },
  notices: [],
};

// The studio: one store of that state and the engine behind it. Actions are functions of it, in the files beside.

/** Calls of the worker that the studio makes; the others are the command's. */
export type StudioWorker = Omit<Engine, 'openDisk' | 'verify' | 'evaluate' | 'importance'>;

export interface Studio {
  readonly worker: StudioWorker;
  readonly store: StoreApi<StudioState>;
  /**
   * State that cannot be serialized: the picked output folder, whether Merge was just pressed, and the abort of what a hub
   * is asked.
   */
  readonly transient: {
    folder: FileSystemDirectoryHandle | null;
    starting: boolean;
    asking: Map<string, AbortController>;
    /** Time of the last report of the job, and the timer that ends an engine which does not cancel it. */
    heardAt: number;
    /** Whether the browser was asked to keep what is stored. */
    askedToKeep?: true;
    cancelTimer?: ReturnType<typeof setTimeout>;
    /** The remaining time on display, from the worker's estimate. */
    timeLeft: (seconds: number | null) => number | null;
  };
}

export function createStudio(worker: StudioWorker): Studio {
  const store = createStore<StudioState>(() => initialState);
  return {
    worker,
    store,
    transient: { folder: null, starting: false, asking: new Map(), heardAt: 0, timeLeft: steadyTimeLeft() },
  };
}

/** Asks a hub, under a name by which it can be ended; what was asked under it before ends. */
export async function askHub<T>(
  studio: Studio,
  name: string,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { asking } = studio.transient;
  neverMind(studio, name);
  const stop = new AbortController();
  asking.set(name, stop);
  try {
    return await ask(stop.signal);
  } finally {
    if (asking.get(name) === stop) asking.delete(name);
  }
}

/** Ends what a hub is asked under that name. */
export function neverMind({ transient }: Studio, name: string): void {
  transient.asking.get(name)?.abort();
}

/** The method of the recipe; the picker offers no other than those that exist. */
export function methodOf(recipe: RecipeState): MergeMethod {
  return methodById.get(recipe.method) ?? (methods[0] as MergeMethod);
}

/** Changes the recipe. Everything that follows from it (opened models, the plan) is watched elsewhere. */
export function editRecipe(studio: Studio, edit: (recipe: RecipeState) => RecipeState): void {
  studio.store.setState(({ recipe, models, hub }) => ({
    recipe: withOpened(edit(recipe), recipe.origins, models, hub.pins),
  }));
}

/** Slices of the state that are edited field by field. */
type SliceName = 'engine' | 'generation' | 'hub' | 'measure' | 'output' | 'push' | 'tools' | 'view';

/** Changes fields of a slice. @param change the fields, or what makes them of the slice */
export function editSlice<K extends SliceName>(
  { store }: Pick<Studio, 'store'>,
  name: K,
  change: Partial<StudioState[K]> | ((slice: StudioState[K]) => Partial<StudioState[K]>),
): void {
  store.setState((s) => {
    const fields = typeof change === 'function' ? change(s[name]) : change;
    return { [name]: { ...s[name], ...fields } } as Partial<StudioState>;
  });
}

export function setView(studio: Studio, change: Partial<ViewSlice>): void {
  editSlice(studio, 'view', change);
}

export function showTab(studio: Studio, tab: Tab): void {
  setView(studio, { tab });
}

/** Selects a tensor for the inspector; the same one again lets go of it. */
export function toggleSelected(studio: Studio, name: string): void {
  const { selected } = studio.store.getState().view;
  setView(studio, { selected: selected === name ? null : name });
}

/** Shows a notice that has no place of its own on the page, until the user dismisses it. */
export function notify(
  studio: Studio,
  tone: 'error' | 'note',
  message: string,
  hint: string,
  code = message,
): void {
  studio.store.setState((s) => {
    const id = Math.max(0, ...s.notices.map((n) => n.id)) + 1;
    const others = s.notices.filter((n) => n.message !== message && n.code !== code);
    return { notices: [...others, { id, code, tone, message, hint }].slice(-3) };
  });
}

export function notifyError(studio: Studio, thrown: unknown): void {
  const error = errorReport(thrown);
  if (error.code !== 'Canceled') notify(studio, 'error', error.message, error.hint, error.code);
}

/** Does it; a failure becomes a notice. Never rejects. */
export async function noticed(studio: Studio, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

export function dismissNotice(studio: Studio, id: number): void {
  studio.store.setState((s) => ({ notices: s.notices.filter((n) => n.id !== id) }));
}
