/** Merging runs of the Layers tab one after the other, without touching the recipe. */

import { recipeOfRun } from '../layers/predicted-runs';
import { buildRecipe, freeName, outputName } from './built-recipe';
import { mergeGate } from './merge-gate';
import { planOf } from './plan';
import type { RecipeState } from './recipe-state';
import { carryOut, chooseDestination, newRun, plannedRun } from './run';
import { NOW } from './run-state';
import { methodOf, notify, notifyError, type Studio } from './studio';

/**
 * Merges the recipe or predicted runs, by their ids, in this order; what fails or is stopped ends it. Does nothing while
 * the gate is closed. Never rejects.
 */
export async function mergeRuns(studio: Studio, ids: readonly string[]): Promise<void> {
  if (studio.transient.starting || !mergeGate(studio.store.getState()).open) return;
  studio.transient.starting = true;
  const taken: string[] = [];
  try {
    for (const [i, id] of ids.entries()) {
      studio.store.setState({ queuedRuns: ids.slice(i + 1) });
      if (!(await mergeOne(studio, id, taken))) return;
    }
  } catch (thrown) {
    notifyError(studio, thrown);
  } finally {
    studio.transient.starting = false;
    studio.store.setState({ queuedRuns: [] });
  }
}

/** @returns whether it was merged */
async function mergeOne(studio: Studio, id: string, taken: string[]): Promise<boolean> {
  const state = studio.store.getState();
  const recipe = settingsOf(studio, id);
  if (!recipe) return true; // it was removed meanwhile
  const built = buildRecipe(recipe, state.models, methodOf(recipe));
  const plan = await planOf(studio, recipe);
  const problem = plan.report.problems.find((p) => p.severity === 'error');
  if (problem) {
    notify(studio, 'error', problem.message, problem.remedy);
    return false;
  }
  const destination = await chooseDestination(studio, freeName(outputName(recipe), taken));
  if (!destination) return false;
  taken.push(destination.name);
  const started = newRun(studio, {
    ...plannedRun(studio, recipe, plan, destination),
    ...(id === NOW ? {} : { of: id }),
  });
  await carryOut(studio, started, { recipe: built, engine: state.engine.choice, destination });
  const { run } = studio.store.getState();
  if (run?.status !== 'done') return false;
  if (id !== NOW)
    notify(
      studio,
      'note',
      `Merged ${destination.name}: ${started.methodTitle}.`,
      destination.kind === 'folder'
        ? 'It is in your folder; the recipe is as it was.'
        : 'Its files are under Output; the recipe is as it was.',
    );
  return true;
}

function settingsOf(studio: Studio, id: string): RecipeState | undefined {
  const { recipe, models, predictedRuns } = studio.store.getState();
  if (id === NOW) return recipe;
  const run = predictedRuns.find((own) => own.id === id);
  return run && recipeOfRun(run, recipe, models);
}
