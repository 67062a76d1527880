/**
 * Saved runs: saved when they finish, restored with their recipe and charts, deleted; and the remains of interrupted
 * merges.
 */

import type { DBSchema } from 'idb';
import type { Recipe } from '../../formats/recipe';
import type { CacheInfo } from '../../reports/worker';
import { database } from '../local/database';
import { contributorId } from './built-recipe';
import { isAtWork } from './job';
import { openRecipe } from './opened-recipe';
import { hideRun, showRun } from './predicted-runs';
import { isRecipeOf } from './recipe-identity';
import type { RecipeState } from './recipe-state';
import {
  currentRun,
  type FinishedRun,
  finishedRuns,
  type InterruptedMerge,
  interruptedRuns,
  isFinished,
  NOW,
  type PredictedRun,
  predictedRuns,
  type RunState,
  withEdited,
  withRuns,
} from './runs';
import { noticed, type Studio, type StudioState, setView, showTab } from './studio';
import { JOB_WORDS } from './tabs';

// Finished merges saved in this browser: the recipe, the report with its hashes, and the data to draw them again. No
// weights. Without storage (private windows, strict settings) every call rejects; callers go on without.

/** Saved form of a run. */
type SavedRun = Omit<
  FinishedRun,
  'status' | 'progress' | 'tensors' | 'notes' | 'error' | 'again' | 'of' | 'paused'
>;

interface Saved extends DBSchema {
  runs: { key: string; value: SavedRun };
}

/** Most runs that are saved: the report of a large model has some hundred kilobytes. */
const MOST_RUNS = 30;

const open = database<Saved>('amalgam-runs', 2, (db, before) => {
  // before there was a release, runs had their hashes under another name
  if (before === 1) db.deleteObjectStore('runs');
  db.createObjectStore('runs', { keyPath: 'id' });
});

/** Saves a run; beyond {@link MOST_RUNS} the oldest are deleted. */
async function saveRun(run: FinishedRun): Promise<void> {
  const { status, progress, tensors, notes, error, again, of, paused, ...saved } = run;
  await (await open()).put('runs', saved);
  const old = (await savedRuns()).slice(MOST_RUNS);
  for (const { id } of old) await deleteRun(id);
}

/** All saved runs, the newest first. */
async function savedRuns(): Promise<FinishedRun[]> {
  const all = (await (await open()).getAll('runs')).sort((a, b) => b.startedAt - a.startedAt);
  return all.map((run) => ({
    ...run,
    ...{ status: 'done', progress: null, notes: [], error: null, again: true },
    tensors: run.report.tensors,
  }));
}

async function deleteRun(id: string): Promise<void> {
  await (await open()).delete('runs', id);
}

/**
 * Loads the saved runs and saves every run that finishes; a recipe that was merged before gets its run again, also after a
 * reload. Returns a function that stops.
 */
export function watchRuns(studio: Studio): () => void {
  void load(studio);
  return studio.store.subscribe((state, before) => {
    const { recipe, models } = state;
    const isNews = finishedRuns(state) !== finishedRuns(before);
    if (recipe !== before.recipe || models !== before.models || isNews) void followRecipe(studio);
    // runs of the models before are not beside those of a recipe of others
    if (recipe.contributors !== before.recipe.contributors) hideOthers(studio, before.recipe);
    const run = currentRun(state);
    // a restored run is saved already, under the name it was given
    if (!run || !isFinished(run) || run.again || currentRun(before)?.status === 'done') return;
    // without storage it lasts until the tab is closed
    saveRun(replacePredicted(studio, run))
      .then(() => load(studio))
      .catch(() => {});
  });
}

/** A merge takes the place, and the name, of the run that predicted it. */
function replacePredicted(studio: Studio, run: FinishedRun): FinishedRun {
  const { runs, view } = studio.store.getState();
  const settled = predictedRuns({ runs }).find((own) => own.id === run.of);
  if (!settled) return run;
  const named = settled.name ? { ...run, name: settled.name } : run;
  studio.store.setState({
    runs: withEdited(runs, run.id, () => named).filter((own) => own !== settled),
    view: { ...view, runs: view.runs.map((id) => (id === settled.id ? run.id : id)) },
  });
  return named;
}

/** Ids of the recipe's base and contributors, those that are switched off included. */
export function recipeModelIds({ recipe, models }: Pick<StudioState, 'recipe' | 'models'>): string[] {
  return [recipe.base ?? '', ...recipe.contributors.map((c) => contributorId(recipe.base, c.ref, models))];
}

/** Whether a run is one of these models: of this base, and of no other contributor. */
export function belongsTo(
  { recipe, contributors }: { recipe: Recipe; contributors: readonly { id: string }[] },
  [base, ...ids]: readonly string[],
): boolean {
  return (recipe.baseModel ?? base) === base && contributors.every(({ id }) => ids.includes(id));
}

/** Takes finished runs out of the comparison once the recipe is one of other models than they are of. */
function hideOthers(studio: Studio, before: RecipeState): void {
  const { recipe, models, runs, view } = studio.store.getState();
  const [old, now] = [before, recipe].map((of) => recipeModelIds({ recipe: of, models })) as [
    string[],
    string[],
  ];
  const isLost = (id: string) => {
    const run = finishedRuns({ runs }).find((own) => own.id === id);
    return run !== undefined && belongsTo(run, old) && !belongsTo(run, now);
  };
  const left = view.runs.filter((id) => !isLost(id));
  if (left.length < view.runs.length) setView(studio, { runs: left.length > 0 ? left : [NOW] });
}

/** Makes the newest run of the recipe whose files are still there the studio's run, unless another is at work or failed. */
async function followRecipe(studio: Studio): Promise<void> {
  const state = studio.store.getState();
  const { recipe, models } = state;
  const run = currentRun(state);
  if (run && (run.status !== 'done' || isRecipeOf(run.recipe, recipe, models))) return;
  const same = finishedRuns(state).filter((past) => isRecipeOf(past.recipe, recipe, models));
  if (same.length === 0) return;
  // a dead engine shows its own error
  const outputs = await studio.worker.cache().then(
    (cache) => cache.outputs,
    () => [],
  );
  const kept = same.find(({ destination }) => hasFiles(destination, outputs));
  const now = studio.store.getState();
  if (kept && currentRun(now) === run && now.recipe === recipe) bringBack(studio, kept);
}

function hasFiles({ kind, name }: RunState['destination'], outputs: CacheInfo['outputs']): boolean {
  return kind === 'folder' || outputs.some((o) => o.name === name && o.complete);
}

/**
 * The finished run that Merge would only repeat: same recipe, place, name and engine, its files still there. Null for
 * anything else.
 */
export async function sameMerge(studio: Studio): Promise<RunState | null> {
  const state = studio.store.getState();
  const { recipe, models, output, engine } = state;
  const run = currentRun(state);
  if (run?.status !== 'done' || !isRecipeOf(run.recipe, recipe, models)) return null;
  const { kind, name, folder } = run.destination;
  if (output.kind !== kind || (kind === 'folder' && output.folder !== folder)) return null;
  if (output.name !== null && output.name !== name) return null;
  if (engine.choice !== 'auto' && engine.choice !== run.report?.engine) return null;
  return hasFiles(run.destination, (await studio.worker.cache()).outputs) ? run : null;
}

/** Brings a run back as if it had just finished: its recipe into the panel, its charts into Layers. */
export function reopenRun(studio: Studio, kept: FinishedRun): void {
  openRecipe(studio, kept.report.recipe);
  setView(studio, { runs: [NOW] });
  bringBack(studio, kept);
  showTab(studio, 'layers');
}

function bringBack(studio: Studio, { id }: FinishedRun): void {
  studio.store.setState(({ runs }) => ({
    runs: withEdited<RunState>(runs, id, (run) => ({ ...run, again: true })),
    currentRunId: id,
  }));
}

/** Gives a run a name. */
export async function renameRun(
  studio: Studio,
  run: FinishedRun | PredictedRun,
  name: string,
): Promise<void> {
  const named = { ...run, name };
  studio.store.setState(({ runs }) => ({ runs: withEdited(runs, run.id, () => named) }));
  await noticed(studio, async () => {
    if (named.status === 'done') await saveRun(named);
  });
}

/** Deletes a run; files it wrote stay where they are. */
export function removeRun(studio: Studio, { id, status }: FinishedRun | PredictedRun): void {
  studio.store.setState(({ runs }) => ({ runs: runs.filter((run) => run.id !== id) }));
  hideRun(studio, id);
  if (status === 'done') void noticed(studio, () => deleteRun(id));
}

/** Brings a deleted run back. @param shown it is shown beside the others again */
export function restoreRun(studio: Studio, run: FinishedRun | PredictedRun, shown: boolean): void {
  studio.store.setState(({ runs }) => ({ runs: [...runs.filter(({ id }) => id !== run.id), run] }));
  if (shown) showRun(studio, run.id);
  if (run.status === 'done') void noticed(studio, () => saveRun(run));
}

/** Why no other run can be opened now, or null. */
export function whyNotReopen(state: StudioState): string | null {
  return isAtWork(state, 'merge') ? JOB_WORDS.merge.busy : null;
}

/** Takes up the saved runs; those in this tab take precedence. */
async function load(studio: Studio): Promise<void> {
  const kept = await savedRuns().catch(() => []);
  studio.store.setState(({ runs, currentRunId }) => {
    const here = new Map(runs.map((run) => [run.id, run]));
    const all = kept.map((run) => here.get(run.id) ?? run);
    const last = runs.filter((run) => run.id === currentRunId && run.status === 'done' && !all.includes(run));
    return { runs: withRuns(runs, 'done', [...last, ...all]) };
  });
}

/** Asks the engine for interrupted merges. Never rejects. */
export async function loadInterrupted(studio: Studio): Promise<void> {
  await noticed(studio, async () => {
    const left = (await studio.worker.interrupted()).map(
      (run): InterruptedMerge => ({
        ...run,
        id: `${run.destination.kind} ${run.destination.name}`,
        status: 'interrupted',
      }),
    );
    studio.store.setState(({ runs }) => ({ runs: withRuns(runs, 'interrupted', left) }));
  });
}

/** Resumable remains of the last run. */
export function resumable(state: StudioState): InterruptedMerge | undefined {
  const run = currentRun(state);
  return interruptedRuns(state).find(
    ({ destination: { kind, name } }) => run?.destination.kind === kind && run.destination.name === name,
  );
}

/**
 * Lists the remains of a run that has just ended early, and deletes them where the user canceled it here before the first
 * tensor was done: there is nothing to resume. A folder on disk is left to its owner. Never rejects.
 */
export async function finishUnfinished(studio: Studio): Promise<void> {
  await loadInterrupted(studio);
  const state = studio.store.getState();
  const kept = resumable(state);
  if (!state.job?.canceling || !isAtWork(state, 'merge') || currentRun(state)?.paused) return;
  if (kept?.destination.kind !== 'downloads') return;
  if (kept.tensorsDone > 0 || (currentRun(state)?.progress?.tensorsDone ?? 0) > 0) return;
  await noticed(studio, () => studio.worker.discardInterrupted(kept.destination));
  await loadInterrupted(studio);
}
