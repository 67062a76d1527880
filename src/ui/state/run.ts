import { errorReport } from '../../errors';
import { namedFiles } from '../../formats/gguf-type';
import { recipeRepositories } from '../../formats/recipe-models';
import { methodById } from '../../merge/methods/index';
import type { DestinationSpec, Progress } from '../../reports/job';
import type { InterruptedRun, MergeRequest } from '../../reports/merge';
import type { PlanReport } from '../../reports/plan';
import { methodName } from '../format/method-name';
import { pickOutputFolder } from '../local/local-files';
import { buildRecipe, freeName, methodTitle, outputName, recipeTitle, shortName } from './built-recipe';
import { beginJob, cancelJob, isAtWork, reportProgress } from './job';
import { tensorProgress } from './job-state';
import { mergeGate } from './merge-gate';
import { finishUnfinished, loadInterrupted } from './past-runs';
import { planNow, planOf } from './plan';
import { withSettingsOf } from './predicted-runs';
import type { RecipeState } from './recipe-state';
import {
  currentRun,
  interruptedRuns,
  NOW,
  predictedRuns,
  type Run,
  type RunPlan,
  type RunState,
  withEdited,
} from './runs';
import {
  editSlice,
  methodOf,
  noticed,
  notify,
  notifyError,
  type PlanSlice,
  type Studio,
  type StudioState,
  showTab,
} from './studio';

// A merge from the click to the report.

/** Merges the recipe. Does nothing while the gate is closed. Never rejects. */
export function startMerge(studio: Studio): Promise<void> {
  return mergeRuns(studio, [NOW]);
}

/** Does what begins a merge, one at a time; what it throws becomes a notice. */
export async function starting(studio: Studio, begin: () => Promise<void>): Promise<void> {
  if (studio.transient.starting) return;
  studio.transient.starting = true;
  try {
    await begin();
  } catch (thrown) {
    notifyError(studio, thrown);
  } finally {
    studio.transient.starting = false;
  }
}

/** Asks the engine to stop; the run ends as canceled once it has cleaned up. */
export async function cancelMerge(studio: Studio): Promise<void> {
  if (isAtWork(studio.store.getState(), 'merge')) await cancelJob(studio);
}

/** Stops the merge to resume later: its written files stay, and the run bar offers to resume. */
export async function pauseMerge(studio: Studio): Promise<void> {
  const { job } = studio.store.getState();
  if (job?.kind !== 'merge' || job.canceling) return;
  editRun(studio, (run) => ({ ...run, paused: true }));
  await cancelMerge(studio);
}

/** Where the studio writes to. */
export type NamedDestination = Extract<DestinationSpec, { name: string }>;

/** Lets the user pick the folder that outputs go into; false when they dismissed the picker. */
export async function chooseFolder(studio: Studio): Promise<boolean> {
  const handle = await pickOutputFolder();
  if (!handle) return false;
  studio.transient.folder = handle;
  editSlice(studio, 'output', { kind: 'folder', folder: handle.name });
  return true;
}

/**
 * Where files of this name go: below the picked folder (which is asked for first), or into the browser's storage under
 * a name that is free. Null when the user dismissed the picker.
 */
export async function chooseDestination(studio: Studio, name: string): Promise<NamedDestination | null> {
  const { output } = studio.store.getState();
  if (output.kind === 'folder') {
    if (!studio.transient.folder && !(await chooseFolder(studio))) return null;
    const handle = studio.transient.folder;
    return handle && { kind: 'folder', handle, name };
  }
  return { kind: 'downloads', name: freeName(name, await storedNames(studio)) };
}

async function storedNames(studio: Studio): Promise<string[]> {
  return (await studio.worker.cache()).outputs.map((o) => o.name);
}

/** Has the engine do a run that was begun here, and updates its state. Never rejects. */
export async function carryOut(studio: Studio, started: RunState, request: MergeRequest): Promise<void> {
  const end = beginJob(studio, 'merge');
  try {
    const { cardResults } = await import('./measure-tasks');
    const results = cardResults(studio.store.getState().measure, request.recipe);
    const known = results.length > 0 ? { ...request, results } : request;
    const report = await studio.worker.merge(known, (progress) => follow(studio, started.id, progress));
    editRun(studio, (run) => ({ ...run, status: 'done', report, tensors: report.tensors }));
    await loadInterrupted(studio);
    // files of a hub that are only read by a merge have their say, and nothing has to be downloaded any more
    await planNow(studio);
  } catch (thrown) {
    const error = errorReport(thrown);
    // first the remains, then the words about them
    await finishUnfinished(studio);
    const status = error.code === 'Canceled' ? 'canceled' : 'failed';
    editRun(studio, (run) => ({
      ...run,
      status,
      error: status === 'failed' ? error : null,
    }));
  } finally {
    end();
  }
}

/** Plan of a merge in the form of a run. */
function plannedRun(
  studio: Studio,
  recipe: RecipeState,
  plan: Pick<PlanSlice, 'report' | 'contributors'>,
  destination: NamedDestination,
  of?: string,
): RunPlan {
  const { models, output } = studio.store.getState();
  const method = methodOf(recipe);
  const { name } = destination;
  return {
    title: recipeTitle(recipe),
    methodTitle: methodTitle(recipe, method),
    recipe: buildRecipe(recipe, models, method),
    contributors: plan.contributors,
    planned: plan.report?.tensors ?? [],
    layers: plan.report?.layers ?? 0,
    destination: { kind: output.kind, name, folder: output.kind === 'folder' ? output.folder : null },
    outputFiles: namedFiles(plan.report?.outputFiles ?? [], name),
    ...(of !== undefined && { of }),
  };
}

/** Makes this the studio's run. */
export function newRun(studio: Studio, planned: RunPlan): RunState {
  const { runs } = studio.store.getState();
  // two that begin in one millisecond are two
  const last = Math.max(0, ...runs.map((run) => ('notes' in run ? run.startedAt : 0)));
  const startedAt = Math.max(Date.now(), last + 1);
  const started: RunState = {
    ...planned,
    id: String(startedAt),
    status: 'running',
    startedAt,
    progress: null,
    tensors: [],
    notes: [],
    report: null,
    error: null,
  };
  // of those that came to nothing the last one is shown, until there is another
  const isOver = (run: Run) => run.status === 'failed' || run.status === 'canceled';
  studio.store.setState({ runs: [...runs.filter((run) => !isOver(run)), started], currentRunId: started.id });
  return started;
}

function follow(studio: Studio, id: string, progress: Progress): void {
  reportProgress(studio, 'merge', tensorProgress(progress));
  editRun(studio, (run) => {
    if (run.id !== id || run.status !== 'running') return run;
    const { finished, note, ...told } = progress;
    const now = { ...told, secondsLeft: studio.store.getState().job?.progress?.secondsLeft ?? null };
    return {
      ...run,
      progress: now,
      tensors: finished.length === 0 ? run.tensors : [...run.tensors, ...finished],
      notes: note === undefined ? run.notes : [...run.notes, note],
    };
  });
}

function editRun(studio: Studio, edit: (run: RunState) => RunState): void {
  studio.store.setState((s) => ({ runs: withEdited(s.runs, s.currentRunId, edit) }));
}

/**
 * Merges the recipe or predicted runs, by their ids, in this order; what fails or is stopped ends it. Does nothing while
 * the gate is closed. Never rejects.
 */
export async function mergeRuns(studio: Studio, ids: readonly string[]): Promise<void> {
  if (studio.transient.starting || !mergeGate(studio.store.getState()).open) return;
  const taken: string[] = [];
  await starting(studio, async () => {
    for (const [i, id] of ids.entries()) {
      studio.store.setState({ queuedRuns: ids.slice(i + 1) });
      if (!(await mergeOne(studio, id, taken))) break;
    }
  });
  studio.store.setState({ queuedRuns: [] });
}

/**
 * Asks for the folder first where one is wanted: browsers allow that only right after the click.
 * @returns whether it was merged
 */
async function mergeOne(studio: Studio, id: string, taken: string[]): Promise<boolean> {
  const before = studio.store.getState();
  const isNow = id === NOW;
  const run = predictedRuns(before).find((own) => own.id === id);
  if (!isNow && !run) return true; // it was removed meanwhile
  const recipe = run ? withSettingsOf(before.recipe, run.recipe, before.models) : before.recipe;
  const name = (isNow ? before.output.name : null) ?? outputName(recipe);
  const destination = await chooseDestination(studio, freeName(name, taken));
  if (!destination) return false;
  taken.push(destination.name);
  const known = studio.store.getState().plan;
  const plan = isNow && known.status === 'ready' ? known : await planOf(studio, recipe);
  const problem = plan.report?.problems.find((p) => p.severity === 'error');
  if (problem) {
    notify(studio, 'error', problem.message, problem.remedy);
    return false;
  }
  const started = newRun(studio, plannedRun(studio, recipe, plan, destination, isNow ? undefined : id));
  if (isNow && before.view.tab === 'recipe') showTab(studio, 'layers');
  const { choice: engine } = studio.store.getState().engine;
  const stream = before.output.streams;
  await carryOut(studio, started, { recipe: started.recipe, engine, destination, stream });
  if (currentRun(studio.store.getState())?.status !== 'done') return false;
  if (!isNow)
    notify(
      studio,
      'note',
      `Merged ${destination.name}: ${started.methodTitle}.`,
      destination.kind === 'folder'
        ? 'It is in your folder; the recipe is as it was.'
        : 'Its files are under Files; the recipe is as it was.',
    );
  return true;
}

// Merges that were cut off: offered at the start and after a failure, to be resumed or discarded.
/** Why an interrupted merge cannot go on yet, or null: a model of it may just be on its way, as after a start. */
export function whyNotYet(
  { models, opening }: Pick<StudioState, 'models' | 'opening'>,
  { recipe }: InterruptedRun,
): string | null {
  const open = new Set(models.map(({ ref }) => ref));
  const [what] = opening;
  return what === undefined || recipeRepositories(recipe).every((name) => open.has(name))
    ? null
    : `Opening ${what}…`;
}

/** Goes on with an interrupted merge; for one into a folder, asks for that folder again where it is not open. */
export async function resumeRun(studio: Studio, interrupted: InterruptedRun): Promise<void> {
  await starting(studio, async () => {
    const destination = await destinationOf(studio, interrupted);
    if (!destination) return;
    const { recipe, engine, stream = false } = interrupted;
    const started = begin(studio, interrupted, await studio.worker.plan(recipe));
    void carryOut(studio, started, { recipe, engine, destination, stream, resume: true });
  });
}

/** Forgets an interrupted merge. */
export async function discardRun(studio: Studio, { destination }: InterruptedRun): Promise<void> {
  await noticed(studio, async () => {
    await studio.worker.discardInterrupted(destination);
    if (destination.kind === 'folder') {
      const message = `The unfinished folder ${destination.name} is still on your disk.`;
      notify(studio, 'note', message, 'Delete it there if you do not want it.');
    }
  });
  await loadInterrupted(studio);
}

async function destinationOf(studio: Studio, run: InterruptedRun): Promise<DestinationSpec | null> {
  const { kind, name } = run.destination;
  if (kind === 'downloads') return { kind, name };
  const handle = studio.transient.folder ?? (await pickOutputFolder());
  if (!handle) return null;
  studio.transient.folder = handle;
  return { kind, handle, name };
}

function begin(studio: Studio, { recipe, destination }: InterruptedRun, plan: PlanReport): RunState {
  const method = methodById.get(recipe.mergeMethod);
  return newRun(studio, {
    title: destination.name,
    methodTitle: method ? methodName(method) : recipe.mergeMethod,
    recipe,
    contributors: plan.contributors.map((id, color) => ({
      id,
      label: shortName(id.split('+').at(-1)!),
      color,
    })),
    planned: plan.tensors,
    layers: plan.layers,
    destination: {
      ...destination,
      folder: destination.kind === 'folder' ? (studio.transient.folder?.name ?? null) : null,
    },
    outputFiles: namedFiles(plan.outputFiles, destination.name),
  });
}

// One merge at a time over all tabs: the others show it and can take it over.

/** Follows the merges of other tabs for as long as the studio lives, and leaves its own to one that takes over. */
export function watchOtherTabs(studio: Studio): void {
  studio.worker.onYield(() => void pauseMerge(studio));
  studio.worker
    .follow((elsewhere) => {
      studio.store.setState({ elsewhere });
      // it is finished, or its tab is gone: then it can be resumed here
      if (elsewhere === null) void loadInterrupted(studio);
    })
    .catch((thrown: unknown) => notifyError(studio, thrown));
}

/** Waits while models of a merge are on their way, as they are in a tab that was just opened. */
async function untilOpened(studio: Studio, run: InterruptedRun): Promise<void> {
  const isOpen = () => whyNotYet(studio.store.getState(), run) === null;
  if (isOpen()) return;
  await new Promise<void>((resolve) => {
    const stop = studio.store.subscribe(() => {
      if (!isOpen()) return;
      stop();
      resolve();
    });
  });
}

/** Makes the other tab stop, and goes on with its merge here. */
export async function takeOverMerge(studio: Studio): Promise<void> {
  const name = studio.store.getState().elsewhere?.name;
  try {
    await studio.worker.takeOver();
    studio.store.setState({ elsewhere: null });
    await loadInterrupted(studio);
    const interrupted = interruptedRuns(studio.store.getState());
    const run = interrupted.find(({ destination }) => destination.name === name) ?? interrupted[0];
    if (!run) {
      const hint = 'It has ended, or its tab still holds it: look at that tab, or reload this one.';
      return notify(studio, 'note', 'Nothing of the other tab’s merge is there to go on with.', hint);
    }
    await untilOpened(studio, run);
    await resumeRun(studio, run);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}
