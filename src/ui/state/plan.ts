/** Syncs the plan with the recipe: every edit plans again, once the user pauses. */
import { errorReport } from '../../errors';
import type { PlanReport } from '../../reports/plan';
import { buildRecipe, contributorId, shortName } from './built-recipe';
import { missingModels } from './named-models';
import type { RecipeState } from './recipe-state';
import { recipeProblems } from './recipe-validation';
import type { Contributor } from './runs';
import { methodOf, type Studio, type StudioState } from './studio';

/** Pause after an edit before planning, in milliseconds: a slider on the move is not planned. */
const PAUSE_MS = 200;

/** Watches the recipe and the opened models; returns a function that stops watching. */
export function watchPlan(studio: Studio): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const unsubscribe = studio.store.subscribe((now, before) => {
    if (now.recipe === before.recipe && now.models === before.models) return;
    const status = isRecipe(now) ? 'stale' : 'empty';
    if (now.plan.status !== status) studio.store.setState((s) => ({ plan: { ...s.plan, status } }));
    clearTimeout(timer);
    timer = setTimeout(() => void planNow(studio), PAUSE_MS);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
}

/** Plans the current recipe and puts the result into the state, unless the recipe changed meanwhile. Never rejects. */
export async function planNow(studio: Studio): Promise<void> {
  const { recipe, models } = studio.store.getState();
  if (!isRecipe(studio.store.getState())) {
    studio.store.setState({ plan: { status: 'empty', report: null, contributors: [], error: null } });
    return;
  }
  const current = () => {
    const now = studio.store.getState();
    return now.recipe === recipe && now.models === models;
  };
  try {
    const { report, contributors } = await planOf(studio, recipe);
    if (!current()) return;
    studio.store.setState(({ plan: before }) => ({
      plan: {
        status: 'ready',
        // most edits change no tensor: what is drawn from them is not drawn again
        report: { ...report, tensors: previousIfEqual(report.tensors, before.report?.tensors) },
        contributors: previousIfEqual(contributors, before.contributors),
        error: null,
      },
    }));
  } catch (thrown) {
    if (!current()) return;
    studio.store.setState({
      plan: { status: 'failed', report: null, contributors: [], error: errorReport(thrown) },
    });
  }
}

/** The plan of any recipe of the opened models, and its contributors as charts show them. @throws what planning throws */
export async function planOf(
  studio: Studio,
  recipe: RecipeState,
): Promise<{ report: PlanReport; contributors: Contributor[] }> {
  const { models } = studio.store.getState();
  const known = new Map(
    recipe.contributors
      .filter((c) => c.enabled)
      .map(({ ref, color }) => {
        const id = contributorId(recipe.base, ref, models);
        return [id, { id, label: shortName(ref), color }];
      }),
  );
  const report = await studio.worker.plan(buildRecipe(recipe, models, methodOf(recipe)));
  const contributors = report.contributors.map(
    (id) => known.get(id) ?? { id, label: shortName(id), color: 0 },
  );
  return { report, contributors };
}

/** Nothing is planned about a model that is not open. */
function isRecipe(state: StudioState): boolean {
  const { recipe, models } = state;
  return missingModels(state).length === 0 && recipeProblems(recipe, models, methodOf(recipe)).length === 0;
}

/** Whether two values are equal: plain values, arrays and objects, compared to the bottom. */
export function isDeepEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [of, other] = [Object.entries(a), new Map(Object.entries(b))];
  return (
    of.length === other.size &&
    of.every(([key, value]) => other.has(key) && isDeepEqual(value, other.get(key)))
  );
}

/** Gives the previous object where the new one is deeply equal to it. */
export function previousIfEqual<T>(now: T, before: T | undefined): T {
  return before !== undefined && isDeepEqual(now, before) ? before : now;
}
