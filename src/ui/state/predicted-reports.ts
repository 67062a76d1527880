/** Reports predicted from the statistics pass for the recipe as it stands: what charts show before a merge has run. */

import type { Recipe } from '../../formats/recipe';
import type { PredictedReport } from '../../merge/prediction/predicted-report';
import { Predictor } from '../../merge/prediction/predictor';
import type { ModelInfo } from '../../reports/models';
import { deltaKey } from './delta-statistics';
import type { RecipeState } from './recipe-state';
import { type DeltaStatisticsSlice, methodOf, type PlanSlice } from './studio';

export type PredictedReports = ReadonlyMap<string, PredictedReport>;

interface PredictionState {
  deltaStatistics: DeltaStatisticsSlice;
  plan: PlanSlice;
  recipe: RecipeState;
  models: readonly ModelInfo[];
}

const NOTHING: PredictedReports = new Map();
const predictor = new Predictor();

/**
 * The predicted report of every measured tensor that the plan would compute, by name; empty while the statistics are of
 * other models.
 * @param built the recipe of the state, as it would be merged
 */
export function predictedReports(
  { deltaStatistics, plan, recipe, models }: PredictionState,
  built: Recipe,
): PredictedReports {
  const { tensors: measured, key } = deltaStatistics;
  if (!plan.report || measured.length === 0 || key !== deltaKey({ recipe, models })) return NOTHING;
  if (built.slices || built.stages) return NOTHING; // other layers than those that were measured
  const { tensors: planned, layers = 0 } = plan.report;
  return predictor.predict({
    ...{ measured, planned, layers },
    ...{ recipe: built, method: methodOf(recipe) },
  });
}
