/** How far the masks of one model agree in two runs: both trim it again, on the engine. */
import type { Recipe } from '../../formats/recipe';
import type { OverlapRequest } from '../../reports/overlap';
import { noOverlap, type OverlapSlice } from './facts';
import { runTool, whyNoTool } from './job';
import { recipeKey } from './run-current';
import type { Studio } from './studio';

/** Which two recipes, and which model. */
export function overlapKey(recipes: readonly [Recipe, Recipe], model: string): string {
  return JSON.stringify([...recipes.map(recipeKey), model]);
}

/** Counts the overlap, unless another job is at work. Never rejects. */
export async function countOverlap(studio: Studio, recipes: readonly [Recipe, Recipe], model: string) {
  const facts = studio.store.getState();
  if (whyNoTool(facts) !== null) return;
  const key = overlapKey(recipes, model);
  const set = (overlap: Partial<OverlapSlice>) =>
    studio.store.setState({ overlap: { ...noOverlap, key, ...overlap } });
  set({ status: 'counting' });
  const request: OverlapRequest = { recipes, model, engine: facts.engine.choice };
  const outcome = await runTool(studio, 'overlap', (onProgress) =>
    studio.engine.overlap(request, onProgress),
  );
  if ('value' in outcome) set({ status: 'ready', tensors: outcome.value });
  else if ('error' in outcome) set({ status: 'failed', error: outcome.error });
  else set({ status: 'stopped' });
}
