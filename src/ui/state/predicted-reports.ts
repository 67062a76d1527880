/** Reports predicted from the statistics pass for the recipe as it stands: what charts show before a merge has run. */

import type { Recipe } from '../../formats/recipe';
import type { PredictedReport } from '../../merge/prediction/predicted-report';
import { Predictor } from '../../merge/prediction/predictor';
import { recipeSettings } from '../../merge/prediction/recipe-settings';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ModelInfo } from '../../reports/models';
import { buildRecipe } from './built-recipe';
import { deltaKey } from './delta-statistics';
import type { RecipeState } from './recipe-state';
import { NOW } from './runs';
import { methodOf, type Studio } from './studio';
import type { DeltaStatisticsSlice, PlanSlice } from './studio-state';

export type PredictedReports = ReadonlyMap<string, PredictedReport>;

interface PredictionState {
  deltaStatistics: DeltaStatisticsSlice;
  plan: PlanSlice;
  recipe: RecipeState;
  models: readonly ModelInfo[];
}

const NOTHING: PredictedReports = new Map();

/** The predictor of a run: a step of a slider looks at what it changed in its own run, and leaves the others alone. */
function predictorOf({ predictors }: Studio, run: string): Predictor {
  const known = predictors.get(run) ?? new Predictor();
  predictors.set(run, known);
  return known;
}

/**
 * The predicted report of every measured tensor that the plan would compute, by name; empty while the statistics are of
 * other models.
 * @param built the recipe of the state, as it would be merged
 */
export function predictedReports(
  studio: Studio,
  { deltaStatistics, plan, recipe, models }: PredictionState,
  built: Recipe,
  run: string,
): PredictedReports {
  const { tensors: measured, key } = deltaStatistics;
  if (!plan.report || measured.length === 0 || key !== deltaKey({ recipe, models })) return NOTHING;
  if (built.slices || built.stages) return NOTHING; // other layers than those that were measured
  const { tensors: planned, layers = 0 } = plan.report;
  return predictorOf(studio, run).predict({
    ...{ measured, planned, layers },
    ...{ recipe: built, method: methodOf(recipe) },
  });
}

/** The sampled masks of a tensor's contributors, by id; those that are not known are left out. */
export function predictedMasks(
  studio: Studio,
  statistics: DeltaStatistics,
  { plan, recipe, models }: Omit<PredictionState, 'deltaStatistics'>,
): ReadonlyMap<string, Uint8Array> {
  const method = methodOf(recipe);
  const layers = plan.report?.layers ?? 0;
  const settings = recipeSettings(buildRecipe(recipe, models, method), method, layers)(statistics);
  const masks = new Map<string, Uint8Array>();
  if (!settings) return masks;
  for (const [i, { id }] of statistics.contributors.entries()) {
    const mask = predictorOf(studio, NOW).mask(statistics, method, settings, i);
    if (mask) masks.set(id, mask);
  }
  return masks;
}
