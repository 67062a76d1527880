/** Planning and merging a recipe, of one document or of several. */

import { withAheadProblems } from '../calibration/planned';
import type { Recipe } from '../formats/recipe';
import type { OpenModels } from '../host/models';
import { cachedHashes } from '../host/storage';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/make-plan';
import type { Plan } from '../merge/plan/plan';
import { planFacts } from '../merge/plan/plan-facts';
import type { Progress } from '../reports/job';
import type { MergeReport, MergeRequest } from '../reports/merge';
import type { PlanFacts } from '../reports/plan';
import { runMerge } from './job';
import { runStages } from './stages-job';
import { planStages, stagedFacts } from './stages-plan';

/** The plan of a recipe of opened models; of several stages only the last. */
export async function planRecipe(recipe: Recipe, models: OpenModels): Promise<Plan> {
  const plan = await makePlan(recipe, (ref) => models.open(ref), methodById, await cachedHashes());
  return withAheadProblems(plan, models);
}

/** The plan of a recipe and all its stages, as it is shown. */
export async function recipeFacts(recipe: Recipe, models: OpenModels): Promise<PlanFacts> {
  if (!recipe.stages) return planFacts(await planRecipe(recipe, models));
  return stagedFacts(await planStages(recipe, models, methodById, await cachedHashes()));
}

/** Merges a recipe with all its stages. @throws AmalgamError as `runMerge` and `runStages` */
export async function mergeRecipe(
  request: MergeRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<MergeReport> {
  return request.recipe.stages
    ? runStages(request, models, signal, onProgress)
    : runMerge(await planRecipe(request.recipe, models), request, models, signal, onProgress);
}
