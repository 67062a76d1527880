/** Reports predicted from the statistics pass for the recipe as it stands: what charts show before a merge has run. */

import { type PreparedStatistics, prepareStatistics } from '../../merge/prediction/contributor-selection';
import { predict, predictMask } from '../../merge/prediction/predict';
import type { PredictedReport } from '../../merge/prediction/predicted-report';
import { recipeSettings } from '../../merge/prediction/recipe-settings';
import type { ModelFacts } from '../../reports/models';
import type { PlanTensorFacts } from '../../reports/plan';
import type { DeltaStatistics } from '../../reports/profile';
import { deltaKey } from './delta-statistics';
import type { DeltaStatisticsSlice, PlanSlice } from './facts';
import { buildRecipe } from './recipe-build';
import type { RecipeFacts } from './recipe-facts';
import { methodOf } from './studio';

export type PredictedReports = ReadonlyMap<string, PredictedReport>;

interface Facts {
  profile: DeltaStatisticsSlice;
  plan: PlanSlice;
  recipe: RecipeFacts;
  models: readonly ModelFacts[];
}

const NOTHING: PredictedReports = new Map();
const prepared = new WeakMap<DeltaStatistics, PreparedStatistics>();
let last: { facts: Facts; reports: PredictedReports } | undefined;

/**
 * The predicted report of every measured tensor that the plan would compute, by name; empty while the profile is of other
 * models. Several parts of the page ask for the same facts: the last answer is kept.
 */
export function predictedReports(facts: Facts): PredictedReports {
  const known = last?.facts;
  if (
    last &&
    known?.profile.tensors === facts.profile.tensors &&
    known.profile.key === facts.profile.key &&
    known.plan.facts?.tensors === facts.plan.facts?.tensors &&
    known.plan.facts?.layers === facts.plan.facts?.layers &&
    known.recipe === facts.recipe &&
    known.models === facts.models
  ) {
    return last.reports;
  }
  const reports = compute(facts);
  last = { facts, reports };
  return reports;
}

function compute({ profile, plan, recipe, models }: Facts): PredictedReports {
  const planned = plan.facts;
  if (!planned || profile.tensors.length === 0 || profile.key !== deltaKey({ recipe, models })) {
    return NOTHING;
  }
  const built = buildRecipe(recipe, models, methodOf(recipe));
  if (built.slices || built.stages) return NOTHING; // other layers than those that were measured
  const method = methodOf(recipe);
  const settings = recipeSettings(built, method, planned.layers);
  const reports = new Map<string, PredictedReport>();
  for (const r of predict(changedStatistics(profile.tensors, planned.tensors), method, settings)) {
    reports.set(r.name, r);
  }
  return reports;
}

let changed: { of: readonly unknown[]; profiles: readonly PreparedStatistics[] } | undefined;

/** The profiles of tensors that the plan would compute, made ready; worked out once for the same plan. */
function changedStatistics(
  tensors: DeltaStatisticsSlice['tensors'],
  planned: readonly PlanTensorFacts[],
): readonly PreparedStatistics[] {
  if (changed?.of[0] !== tensors || changed.of[1] !== planned) {
    const merged = new Set(planned.filter((t) => !t.copied).map((t) => t.name));
    const profiles = tensors.filter((t) => merged.has(t.name)).map(ready);
    changed = { of: [tensors, planned], profiles };
  }
  return changed.profiles;
}

/** The sampled masks of a tensor's contributors, by id; those that are not known are left out. */
export function predictedMasks(
  profile: DeltaStatistics,
  { plan, recipe, models }: Omit<Facts, 'profile'>,
): ReadonlyMap<string, Uint8Array> {
  const method = methodOf(recipe);
  const layers = plan.facts?.layers ?? 0;
  const settings = recipeSettings(buildRecipe(recipe, models, method), method, layers)(profile);
  const masks = new Map<string, Uint8Array>();
  if (!settings) return masks;
  for (const [i, { id }] of profile.contributors.entries()) {
    const mask = predictMask(ready(profile), method, settings, i);
    if (mask) masks.set(id, mask);
  }
  return masks;
}

function ready(profile: DeltaStatistics): PreparedStatistics {
  const known = prepared.get(profile);
  if (known) return known;
  const made = prepareStatistics(profile);
  prepared.set(profile, made);
  return made;
}
