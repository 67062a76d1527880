/** The studio: one store of its state and the engine behind it. Actions are functions of it, in the files beside. */
import { createStore, type StoreApi } from 'zustand/vanilla';
import { errorReport } from '../../errors';
import type { MergeMethod } from '../../merge/method';
import { methodById, methods } from '../../merge/methods/index';
import { steadyTimeLeft } from '../../reports/time-left';
import type { Engine } from '../../worker/client';
import { withOpened } from './model-origins';
import type { RecipeState } from './recipe-state';
import { initialState, type StudioState, type ViewSlice } from './studio-state';
import type { Tab } from './tabs';

/** Calls of the worker that the studio makes; the others are the command's. */
export type StudioWorker = Omit<Engine, 'openDisk' | 'verify' | 'evaluate' | 'importance'>;

export interface Studio {
  readonly worker: StudioWorker;
  readonly store: StoreApi<StudioState>;
  /**
   * State that cannot be serialized: the picked output folder, whether Merge was just pressed, and the abort of a sign-in.
   */
  readonly transient: {
    folder: FileSystemDirectoryHandle | null;
    starting: boolean;
    signIn: AbortController | null;
    /** Time of the last report of the job, and the timer that ends an engine which does not cancel it. */
    heardAt: number;
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
    transient: { folder: null, starting: false, signIn: null, heardAt: 0, timeLeft: steadyTimeLeft() },
  };
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
