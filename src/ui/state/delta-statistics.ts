/**
 * The statistics pass of the recipe's models: begun by itself where it costs little, on request where weights would
 * have to be downloaded or much would be read. Any other job goes first; the pass begins again after it.
 */

import { errorFacts } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import type { ModelFacts } from '../../reports/models';
import type { PlanFacts } from '../../reports/plan';
import { type DeltaStatisticsSlice, noDeltas } from './facts';
import { contributorId } from './recipe-build';
import type { RecipeFacts } from './recipe-facts';
import type { Studio } from './studio';

/** Bytes that are read without asking; about a second from a disk. */
const UNASKED_BYTES = 512 * 1024 * 1024;

interface RecipeModels {
  recipe: RecipeFacts;
  models: readonly ModelFacts[];
}

/** Base and enabled contributors: what the pass depends on. */
export function deltaKey({ recipe, models }: RecipeModels): string {
  return JSON.stringify([
    recipe.base,
    ...recipe.contributors.filter((c) => c.enabled).map((c) => contributorId(recipe.base, c.ref, models)),
  ]);
}

/** The recipe whose plan the pass follows: plain task vectors, whatever the method is. */
export function deltaRecipe({ recipe, models }: RecipeModels): Recipe | null {
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

/** Whether a pass over the models of a plan costs so little that nobody is asked. */
export function goesUnasked({ bytesToDownload, bytesToRead }: PlanFacts): boolean {
  return bytesToDownload === 0 && bytesToRead <= UNASKED_BYTES;
}

/** Watches the recipe's models; returns a function that stops watching. */
export function watchDeltas(studio: Studio): () => void {
  return studio.store.subscribe((now, before) => {
    const idle = now.job === null;
    if (now.plan === before.plan && idle === (before.job === null)) return;
    if (!idle || now.plan.status !== 'ready' || !now.plan.facts?.clean) return;
    const key = deltaKey(now);
    if (now.profile.key === key && now.profile.status !== 'none') return;
    if (deltaRecipe(now) === null) return;
    if (goesUnasked(now.plan.facts)) void measureDeltas(studio);
    else studio.store.setState({ profile: { ...noDeltas, status: 'offered', key } });
  });
}

/** Runs the pass for the recipe as it is. Never rejects. */
export async function measureDeltas(studio: Studio): Promise<void> {
  const facts = studio.store.getState();
  const recipe = deltaRecipe(facts);
  if (!recipe) return;
  const key = deltaKey(facts);
  const edit = (change: Partial<DeltaStatisticsSlice>) =>
    studio.store.setState((s) => (s.profile.key === key ? { profile: { ...s.profile, ...change } } : {}));
  studio.store.setState({ profile: { ...noDeltas, status: 'measuring', key } });
  try {
    const { tensors } = await studio.engine.profile({ recipe, engine: facts.engine.choice }, (progress) => {
      const { profile } = studio.store.getState();
      if (profile.key !== key) return;
      edit({
        expected: progress.tensors,
        secondsLeft: progress.secondsLeft,
        ...(progress.finished.length > 0 ? { tensors: [...profile.tensors, ...progress.finished] } : {}),
      });
    });
    edit({ status: 'ready', tensors, expected: tensors.length, secondsLeft: null });
  } catch (thrown) {
    const error = errorFacts(thrown);
    // pushed aside by another job: `none` lets the watcher begin again
    if (error.code === 'Cancelled' || error.code === 'Busy') edit({ status: 'none' });
    else edit({ status: 'failed', error });
  }
}
