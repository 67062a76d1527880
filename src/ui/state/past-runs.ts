/** Runs of before: kept when they finish, brought back with their recipe and charts, compared, forgotten. */
import type { MergeReport } from '../../reports/merge';
import type { CacheInfo } from '../../reports/worker';
import { hideRun } from '../layers/predicted-runs';
import { deleteRun, keepRun, keptRuns } from '../local/saved-runs';
import { contributorId } from './built-recipe';
import { isAtWork } from './job';
import { openRecipe } from './opened-recipe';
import { isRecipeOf } from './recipe-identity';
import type { RecipeState } from './recipe-state';
import { type KeptRun, NOW, type RunState } from './run-state';
import { notifyError, type Studio, setView, showTab } from './studio';
import type { StudioState } from './studio-state';
import { JOB_WORDS } from './tabs';

/**
 * Loads what was kept and keeps every run that finishes; a recipe that was merged before has its run again, also after a
 * reload. Returns a function that stops.
 */
export function watchRuns(studio: Studio): () => void {
  void load(studio);
  return studio.store.subscribe(({ run, recipe, models, pastRuns }, before) => {
    if (recipe !== before.recipe || models !== before.models || pastRuns !== before.pastRuns)
      void followRecipe(studio);
    // runs of the models before are not beside those of a recipe of others
    if (recipe.contributors !== before.recipe.contributors) hideOthers(studio, before.recipe);
    // one that was brought back is kept already, under the name it was given
    if (run?.status !== 'done' || !run.report || run.again || before.run?.status === 'done') return;
    // a browser that keeps nothing: the list stays empty
    const kept = keptRun(run, run.report);
    const settled = studio.store.getState().predictedRuns.find((own) => own.id === run.of);
    keepRun(settled?.name ? { ...kept, name: settled.name } : kept)
      .then(() => load(studio))
      .then(() => settled && replaceRun(studio, settled.id, kept.id))
      .catch(() => {});
  });
}

/** Takes finished runs out of the comparison once the recipe is one of other models than they are of. */
function hideOthers(studio: Studio, before: RecipeState): void {
  const { recipe, models, pastRuns, view } = studio.store.getState();
  const idsOf = (of: RecipeState) =>
    of.contributors.filter((c) => c.enabled).map((c) => contributorId(of.base, c.ref, models));
  const [old, now] = [new Set(idsOf(before)), new Set(idsOf(recipe))];
  const isLost = (id: string) => {
    const ids = pastRuns.find((run) => run.id === id)?.contributors.map((c) => c.id);
    return ids?.some((own) => old.has(own)) && !ids.some((own) => now.has(own));
  };
  const left = view.runs.filter((id) => !isLost(id));
  if (left.length < view.runs.length) setView(studio, { runs: left.length > 0 ? left : [NOW] });
}

/** A merge takes the place of the run that predicted it. */
function replaceRun(studio: Studio, predicted: string, kept: string): void {
  studio.store.setState(({ predictedRuns, view }) => ({
    predictedRuns: predictedRuns.filter((own) => own.id !== predicted),
    view: { ...view, runs: view.runs.map((id) => (id === predicted ? kept : id)) },
  }));
}

/** Makes the newest run of the recipe whose files are still there the studio's run, unless another is at work or failed. */
async function followRecipe(studio: Studio): Promise<void> {
  const { run, recipe, models, pastRuns } = studio.store.getState();
  if (run && (run.status !== 'done' || isRecipeOf(run.recipe, recipe, models))) return;
  const same = pastRuns.filter((past) => isRecipeOf(past.asked ?? past.recipe, recipe, models));
  if (same.length === 0) return;
  // an engine that is dead says so by itself
  const outputs = await studio.worker.cache().then(
    (cache) => cache.outputs,
    () => [],
  );
  const kept = same.find(({ destination }) => hasFiles(destination, outputs));
  const now = studio.store.getState();
  if (kept && now.run === run && now.recipe === recipe) bringBack(studio, kept);
}

function hasFiles({ kind, name }: RunState['destination'], outputs: CacheInfo['outputs']): boolean {
  return kind === 'folder' || outputs.some((o) => o.name === name && o.complete);
}

/**
 * The finished run that Merge would only repeat: of the recipe as it is, in the same place and under the same name, by the
 * same engine, its files still there. Null for anything else.
 */
export async function sameMerge(studio: Studio): Promise<RunState | null> {
  const { run, recipe, models, output, engine } = studio.store.getState();
  if (run?.status !== 'done' || !isRecipeOf(run.recipe, recipe, models)) return null;
  const { kind, name, folder } = run.destination;
  if (output.kind !== kind || (kind === 'folder' && output.folder !== folder)) return null;
  if (output.name !== null && output.name !== name) return null;
  if (engine.choice !== 'auto' && engine.choice !== run.report?.engine) return null;
  return hasFiles(run.destination, (await studio.worker.cache()).outputs) ? run : null;
}

/** Brings a run back as if it had just finished: its recipe into the panel, its charts into Layers. */
export function reopenRun(studio: Studio, kept: KeptRun): void {
  openRecipe(studio, kept.recipe);
  setView(studio, { runs: [NOW] });
  bringBack(studio, kept);
  showTab(studio, 'layers');
}

function bringBack(studio: Studio, kept: KeptRun): void {
  const { id: _, asked = kept.recipe, ...run } = kept;
  studio.store.setState((s) => ({
    run: {
      ...run,
      recipe: asked,
      id: (s.run?.id ?? 0) + 1,
      status: 'done',
      progress: null,
      tensors: kept.report.tensors,
      log: [{ at: 0, tone: 'plain', text: `Merged ${new Date(kept.startedAt).toLocaleString()}` }],
      error: null,
      again: true,
    },
  }));
}

/** Gives a run a name. */
export async function renameRun(studio: Studio, kept: KeptRun, name: string): Promise<void> {
  try {
    await keepRun({ ...kept, name });
  } catch (thrown) {
    notifyError(studio, thrown);
  }
  await load(studio);
}

/** What a finished run is kept under. */
export function keptRunId(startedAt: number, report: Pick<MergeReport, 'recipeSha256'>): string {
  return `${startedAt}-${report.recipeSha256.slice(0, 12)}`;
}

/** Forgets a run; files it wrote stay where they are. */
export async function forgetRun(studio: Studio, kept: KeptRun): Promise<void> {
  try {
    await deleteRun(kept.id);
    hideRun(studio, kept.id);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
  await load(studio);
}

/** Why no other run can be opened now, or null. */
export function whyNotReopen(state: StudioState): string | null {
  return isAtWork(state, 'merge') ? JOB_WORDS.merge.busy : null;
}

async function load(studio: Studio): Promise<void> {
  const pastRuns = await keptRuns().catch(() => []);
  studio.store.setState({ pastRuns });
}

function keptRun(run: RunState, report: NonNullable<RunState['report']>): KeptRun {
  const { title, methodTitle, contributors, planned, layers, destination, outputFiles, startedAt } = run;
  return {
    id: keptRunId(startedAt, report),
    title,
    methodTitle,
    // what was merged: where λ was searched for, the report has what was found
    recipe: report.recipe,
    asked: run.recipe,
    contributors,
    planned,
    layers,
    destination,
    outputFiles,
    startedAt,
    report,
  };
}
