/**
 * The statistics pass of the recipe's models: begun automatically where it costs little, on request where weights would
 * have to be downloaded or much would be read. Any other job goes first; the pass begins again after it.
 */

import { errorReport } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import type { ModelInfo } from '../../reports/models';
import type { PlanReport } from '../../reports/plan';
import { contributorId } from './built-recipe';
import type { RecipeState } from './recipe-state';
import { type DeltaStatisticsSlice, noDeltas, type Studio } from './studio';

/** Bytes that are read without asking; about a second from a disk. */
const UNASKED_BYTES = 512 * 1024 * 1024;

interface RecipeModels {
  recipe: RecipeState;
  models: readonly ModelInfo[];
}

/** Base and enabled contributors: what the pass depends on. */
export function deltaKey({ recipe, models }: RecipeModels): string {
  return JSON.stringify([
    recipe.base,
    ...recipe.contributors.filter((c) => c.enabled).map((c) => contributorId(recipe.base, c.ref, models)),
  ]);
}

/** The recipe whose plan the pass follows: plain task vectors, whatever the method is. */
function deltaRecipe({ recipe, models }: RecipeModels): Recipe | null {
  const contributors = recipe.contributors.filter((c) => c.enabled);
  if (recipe.base === null || contributors.length === 0) return null;
  return {
    mergeMethod: 'task_arithmetic',
    baseModel: recipe.base,
    models: contributors.map((c) => ({
      model: contributorId(recipe.base, c.ref, models),
      parameters: { weight: 1 },
    })),
    parameters: {},
    amalgam: { nonFinite: 'carry' },
  };
}

/** Whether a pass over the models of a plan costs so little that it runs unasked. */
export function goesUnasked({ bytesToDownload, bytesToRead }: PlanReport): boolean {
  return bytesToDownload === 0 && bytesToRead <= UNASKED_BYTES;
}

/** Watches the recipe's models; returns a function that stops watching. */
export function watchDeltas(studio: Studio): () => void {
  return studio.store.subscribe((now, before) => {
    const idle = now.job === null;
    if (now.plan === before.plan && idle === (before.job === null)) return;
    if (!idle || now.plan.status !== 'ready' || !now.plan.report?.clean) return;
    const key = deltaKey(now);
    if (now.deltaStatistics.key === key && now.deltaStatistics.status !== 'none') return;
    if (deltaRecipe(now) === null) return;
    if (goesUnasked(now.plan.report)) void measureDeltas(studio);
    else studio.store.setState({ deltaStatistics: { ...noDeltas, status: 'offered', key } });
  });
}

/** Runs the pass for the current recipe. Never rejects. */
export async function measureDeltas(studio: Studio): Promise<void> {
  const state = studio.store.getState();
  const recipe = deltaRecipe(state);
  if (!recipe) return;
  const key = deltaKey(state);
  const edit = (change: Partial<DeltaStatisticsSlice>) =>
    studio.store.setState((s) =>
      s.deltaStatistics.key === key ? { deltaStatistics: { ...s.deltaStatistics, ...change } } : {},
    );
  studio.store.setState({ deltaStatistics: { ...noDeltas, status: 'measuring', key } });
  try {
    const { tensors } = await studio.worker.deltaStatistics(
      { recipe, engine: state.engine.choice },
      (progress) => {
        const { deltaStatistics } = studio.store.getState();
        if (deltaStatistics.key !== key) return;
        if (progress.finished.length > 0)
          edit({ tensors: [...deltaStatistics.tensors, ...progress.finished] });
      },
    );
    edit({ status: 'ready', tensors });
  } catch (thrown) {
    const error = errorReport(thrown);
    // pushed aside by another job: `none` lets the watcher begin again
    if (error.code === 'Canceled' || error.code === 'Busy') edit({ status: 'none' });
    else edit({ status: 'failed', error });
  }
}
