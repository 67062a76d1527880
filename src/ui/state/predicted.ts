/** Reports predicted from the statistics pass for the recipe as it stands: what charts show before a merge has run. */

import { type PreparedStatistics, prepareStatistics } from '../../merge/prediction/contributor-selection';
import { predict, predictMask } from '../../merge/prediction/predict';
import type { PredictedReport } from '../../merge/prediction/predicted-report';
import { recipeSettings } from '../../merge/prediction/recipe-settings';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ModelInfo } from '../../reports/models';
import type { PlanTensor } from '../../reports/plan';
import { deltaKey } from './delta-statistics';
import { buildRecipe } from './recipe-build';
import type { RecipeState } from './recipe-state';
import { methodOf } from './studio';
import type { DeltaStatisticsSlice, PlanSlice } from './studio-state';

export type PredictedReports = ReadonlyMap<string, PredictedReport>;

interface PredictionState {
  deltaStatistics: DeltaStatisticsSlice;
  plan: PlanSlice;
  recipe: RecipeState;
  models: readonly ModelInfo[];
}

const NOTHING: PredictedReports = new Map();

/** What predicts one run: its statistics made ready, and what it said last. */
interface Predictor {
  prepared: WeakMap<DeltaStatistics, PreparedStatistics>;
  statistics?: { of: readonly unknown[]; list: readonly PreparedStatistics[] };
  last?: { of: readonly unknown[]; reports: PredictedReports };
}

/** By run: a step of a slider looks at what it changed in its own run, and leaves the others alone. */
const predictors = new Map<string, Predictor>();

function predictorOf(run: string): Predictor {
  const known = predictors.get(run) ?? { prepared: new WeakMap() };
  predictors.set(run, known);
  return known;
}

/**
 * The predicted report of every measured tensor that the plan would compute, by name; empty while the statistics are of
 * other models. Several parts of the page ask for the same facts: the last answer of every run is kept.
 */
export function predictedReports(
  { deltaStatistics, plan, recipe, models }: PredictionState,
  run = 'now',
): PredictedReports {
  const predictor = predictorOf(run);
  const tensors = plan.report?.tensors;
  const quick = [deltaStatistics.tensors, deltaStatistics.key, tensors, recipe, models];
  if (sameItems(predictor.last?.of.slice(0, 5), quick)) return predictor.last!.reports;
  const method = methodOf(recipe);
  if (
    !tensors ||
    deltaStatistics.tensors.length === 0 ||
    deltaStatistics.key !== deltaKey({ recipe, models })
  )
    return NOTHING;
  const built = buildRecipe(recipe, models, method);
  if (built.slices || built.stages) return NOTHING; // other layers than those that were measured
  const text = JSON.stringify(built);
  // another object with the same settings: a slider of another run moved
  if (predictor.last?.of[5] === text && sameItems(predictor.last.of.slice(0, 3), quick.slice(0, 3))) {
    predictor.last = { of: [...quick, text], reports: predictor.last.reports };
    return predictor.last.reports;
  }
  const settings = recipeSettings(built, method, plan.report?.layers ?? 0);
  const reports = new Map(
    predict(changedStatistics(predictor, deltaStatistics.tensors, tensors), method, settings).map((r) => [
      r.name,
      r,
    ]),
  );
  predictor.last = { of: [...quick, text], reports };
  return reports;
}

function sameItems(a: readonly unknown[] | undefined, b: readonly unknown[]): boolean {
  return a !== undefined && a.length === b.length && a.every((item, i) => item === b[i]);
}

/** The statistics of tensors that the plan would compute, made ready; worked out once for the same plan. */
function changedStatistics(
  predictor: Predictor,
  tensors: DeltaStatisticsSlice['tensors'],
  planned: readonly PlanTensor[],
): readonly PreparedStatistics[] {
  if (!sameItems(predictor.statistics?.of, [tensors, planned])) {
    const merged = new Map(planned.filter((t) => !t.copied).map((t) => [t.name, t]));
    const list = tensors.flatMap((t) => {
      const plan = merged.get(t.name);
      if (!plan) return [];
      // the output's dtype decides which small changes are rounded away
      return ready(predictor, plan.dtype === t.dtype ? t : { ...t, dtype: plan.dtype });
    });
    predictor.statistics = { of: [tensors, planned], list };
  }
  return predictor.statistics!.list;
}

/** The sampled masks of a tensor's contributors, by id; those that are not known are left out. */
export function predictedMasks(
  statistics: DeltaStatistics,
  { plan, recipe, models }: Omit<PredictionState, 'deltaStatistics'>,
): ReadonlyMap<string, Uint8Array> {
  const method = methodOf(recipe);
  const layers = plan.report?.layers ?? 0;
  const settings = recipeSettings(buildRecipe(recipe, models, method), method, layers)(statistics);
  const masks = new Map<string, Uint8Array>();
  if (!settings) return masks;
  for (const [i, { id }] of statistics.contributors.entries()) {
    const mask = predictMask(ready(predictorOf('now'), statistics), method, settings, i);
    if (mask) masks.set(id, mask);
  }
  return masks;
}

function ready({ prepared }: Predictor, statistics: DeltaStatistics): PreparedStatistics {
  const known = prepared.get(statistics);
  if (known) return known;
  const made = prepareStatistics(statistics);
  prepared.set(statistics, made);
  return made;
}
