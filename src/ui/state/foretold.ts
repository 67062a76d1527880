/** Reports foretold from the statistics pass for the recipe as it stands: what charts show before a merge has run. */

import { foretell, foretellMask, type PreparedProfile, prepareProfile } from '../../merge/profile/foretell';
import { recipeSettings } from '../../merge/profile/foretell-recipe';
import type { ForetoldReport } from '../../merge/profile/foretell-report';
import type { ModelFacts } from '../../reports/models';
import type { PlanTensorFacts } from '../../reports/plan';
import type { TensorProfile } from '../../reports/profile';
import type { PlanSlice } from './facts';
import { type ProfileSlice, profileKey } from './profile';
import { buildRecipe } from './recipe-build';
import type { RecipeFacts } from './recipe-facts';
import { methodOf } from './studio';

export type ForetoldReports = ReadonlyMap<string, ForetoldReport>;

interface Facts {
  profile: ProfileSlice;
  plan: PlanSlice;
  recipe: RecipeFacts;
  models: readonly ModelFacts[];
}

const NOTHING: ForetoldReports = new Map();
const prepared = new WeakMap<TensorProfile, PreparedProfile>();
let last: { facts: Facts; reports: ForetoldReports } | undefined;

/**
 * The foretold report of every measured tensor that the plan would compute, by name; empty while the profile is of other
 * models. Several parts of the page ask for the same facts: the last answer is kept.
 */
export function foretoldReports(facts: Facts): ForetoldReports {
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

function compute({ profile, plan, recipe, models }: Facts): ForetoldReports {
  const planned = plan.facts;
  if (!planned || profile.tensors.length === 0 || profile.key !== profileKey({ recipe, models })) {
    return NOTHING;
  }
  const built = buildRecipe(recipe, models, methodOf(recipe));
  if (built.slices || built.stages) return NOTHING; // other layers than those that were measured
  const method = methodOf(recipe);
  const settings = recipeSettings(built, method, planned.layers);
  const reports = new Map<string, ForetoldReport>();
  for (const r of foretell(changedProfiles(profile.tensors, planned.tensors), method, settings)) {
    reports.set(r.name, r);
  }
  return reports;
}

let changed: { of: readonly unknown[]; profiles: readonly PreparedProfile[] } | undefined;

/** The profiles of tensors that the plan would compute, made ready; worked out once for the same plan. */
function changedProfiles(
  tensors: ProfileSlice['tensors'],
  planned: readonly PlanTensorFacts[],
): readonly PreparedProfile[] {
  if (changed?.of[0] !== tensors || changed.of[1] !== planned) {
    const merged = new Set(planned.filter((t) => !t.copied).map((t) => t.name));
    const profiles = tensors.filter((t) => merged.has(t.name)).map(ready);
    changed = { of: [tensors, planned], profiles };
  }
  return changed.profiles;
}

/** The sampled masks of a tensor's contributors, by id; those that are not known are left out. */
export function foretoldMasks(
  profile: TensorProfile,
  { plan, recipe, models }: Omit<Facts, 'profile'>,
): ReadonlyMap<string, Uint8Array> {
  const method = methodOf(recipe);
  const layers = plan.facts?.layers ?? 0;
  const settings = recipeSettings(buildRecipe(recipe, models, method), method, layers)(profile);
  const masks = new Map<string, Uint8Array>();
  if (!settings) return masks;
  for (const [i, { id }] of profile.contributors.entries()) {
    const mask = foretellMask(ready(profile), method, settings, i);
    if (mask) masks.set(id, mask);
  }
  return masks;
}

function ready(profile: TensorProfile): PreparedProfile {
  const known = prepared.get(profile);
  if (known) return known;
  const made = prepareProfile(profile);
  prepared.set(profile, made);
  return made;
}
