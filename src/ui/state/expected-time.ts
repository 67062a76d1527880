/** How long a merge will take, by merges that were made here. Pure. */

import type { RecipeParameters } from '../../formats/recipe';
import type { PlanTensor } from '../../reports/plan';
import { buildRecipe } from './built-recipe';
import type { FinishedRun } from './runs';
import { finishedRuns } from './runs';
import { methodOf } from './studio';
import type { StudioState } from './studio-state';

/** A merge so many times smaller says nothing: most of its time was not spent on weights. */
const TIMES_SMALLER = 20;

/**
 * Seconds the planned merge will take once its inputs are here, by the kept run of the same method, on the same engine
 * and with the same choices, that is nearest to it in size; time grows linearly in elements and contributors. Null
 * where there is none, or only far smaller ones.
 */
export function expectedSeconds(state: StudioState): number | null {
  const { plan, recipe, models, engine } = state;
  if (!plan.report?.clean || plan.report.stages || !engine.info) return null;
  const asked = buildRecipe(recipe, models, methodOf(recipe));
  const kind = engine.choice === 'auto' ? engine.info.auto : engine.choice;
  const size = work(plan.report.tensors);
  const alike = ({ report }: FinishedRun) =>
    report.engine === kind &&
    !report.stagesMerged &&
    report.recipe.mergeMethod === asked.mergeMethod &&
    choices(report.recipe.parameters) === choices(asked.parameters);
  const apart = (run: FinishedRun) => Math.abs(Math.log(work(run.planned) / size));
  const nearest = finishedRuns(state)
    .filter((run) => alike(run) && work(run.planned) * TIMES_SMALLER >= size)
    .sort((a, b) => apart(a) - apart(b))[0];
  return nearest && size > 0 ? (nearest.report.seconds * size) / work(nearest.planned) : null;
}

/** Elements read: of the base and of every model that changes it. */
function work(tensors: readonly PlanTensor[]): number {
  return tensors.reduce((sum, { elements, contributors }) => sum + elements * (1 + contributors.length), 0);
}

/** What is chosen by a word or a switch: it decides what is done, where numbers do not. */
function choices(parameters: RecipeParameters): string {
  return JSON.stringify(
    Object.entries(parameters)
      .filter(([, value]) => typeof value === 'string' || typeof value === 'boolean')
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
