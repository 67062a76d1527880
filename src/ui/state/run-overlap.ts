/** How far the masks of one model agree in two runs: both trim it again, on the engine. */
import type { Recipe } from '../../formats/recipe';
import type { OverlapRequest } from '../../reports/overlap';
import { runTool, whyNoTool } from './job';
import { tensorProgress } from './job-state';
import { recipeKey } from './recipe-identity';
import type { Studio } from './studio';
import { noOverlap, type OverlapSlice } from './studio-state';

/** Which two recipes, and which model. */
export function overlapKey(recipes: readonly [Recipe, Recipe], model: string): string {
  return JSON.stringify([...recipes.map(recipeKey), model]);
}

/** Counts the overlap, unless another job is at work. Never rejects. */
export async function countOverlap(studio: Studio, recipes: readonly [Recipe, Recipe], model: string) {
  const state = studio.store.getState();
  if (whyNoTool(state) !== null) return;
  const key = overlapKey(recipes, model);
  const set = (overlap: Partial<OverlapSlice>) =>
    studio.store.setState({ overlap: { ...noOverlap, key, ...overlap } });
  set({ status: 'counting' });
  const request: OverlapRequest = { recipes, model, engine: state.engine.choice };
  const outcome = await runTool(
    studio,
    'overlap',
    (onProgress) => studio.worker.overlap(request, onProgress),
    tensorProgress,
  );
  if ('value' in outcome) set({ status: 'ready', tensors: outcome.value });
  else if ('error' in outcome) set({ status: 'failed', error: outcome.error });
  else set({ status: 'stopped' });
}
