/** Merges that were cut off: offered at the start and after a failure, to be resumed or discarded. */
import { namedFiles } from '../../formats/gguf-type';
import { recipeRepositories } from '../../formats/recipe-models';
import { methodById } from '../../merge/methods/index';
import type { DestinationSpec } from '../../reports/job';
import type { InterruptedRun } from '../../reports/merge';
import type { PlanReport } from '../../reports/plan';
import { methodName } from '../format/method-name';
import { pickOutputFolder } from '../local/local-files';
import { shortName } from './built-recipe';
import { loadInterrupted } from './past-runs';
import { carryOut, newRun, pauseMerge, starting } from './run';
import { interruptedRuns, type RunState } from './runs';
import { noticed, notify, notifyError, type Studio } from './studio';
import type { StudioState } from './studio-state';

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
    const { recipe, engine } = interrupted;
    const started = begin(studio, interrupted, await studio.worker.plan(recipe));
    void carryOut(studio, started, { recipe, engine, destination, resume: true });
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
