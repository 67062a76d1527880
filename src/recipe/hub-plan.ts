/** What a plan says of models on the Hub: their families, and what it takes to have them pass by instead of downloading them. */
import { familyOf } from '../formats/model-family';
import type { Recipe } from '../formats/recipe';
import { recipeRepositories } from '../formats/recipe-models';
import type { OpenModels } from '../host/models';
import { absentBytes } from '../host/weight-inputs';
import { methodById } from '../merge/methods';
import { asksForCalibration } from '../merge/plan/importance-kind';
import type { Plan } from '../merge/plan/plan';
import { storedInputs } from '../merge/plan/plan-bytes';
import { bytesToMeasure } from '../merge/run/whole-model';
import { readsAgain } from '../merge/tensor/computation';
import type { PlanReport, StreamReport } from '../reports/plan';
import { HELD_BYTES } from '../store/passing-source';

/** @param plans of the stages and of the result, in order */
export async function hubReport(
  recipe: Recipe,
  plans: readonly Plan[],
  models: OpenModels,
): Promise<Pick<PlanReport, 'family' | 'stream'>> {
  const opened = await Promise.allSettled(recipeRepositories(recipe).map((path) => models.open(path)));
  const folders = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value.folder] : []));
  const downloads = plans.some(({ bytesToDownload }) => bytesToDownload > 0);
  return {
    ...(folders.some(({ family }) => family) && { family: familyOf(folders) }),
    ...(downloads && { stream: await planStream(plans, models) }),
  };
}

async function planStream(plans: readonly Plan[], models: OpenModels): Promise<StreamReport> {
  const bytes = await absentBytes(distinct(plans), models);
  const merges = plans.map((plan) => (plan.calibration ?? plan.cut)?.plan ?? plan);
  const sum = (of: (plan: Plan) => number) => merges.reduce((total, plan) => total + of(plan), 0);
  const measured = sum((plan) => bytesToMeasure(plan, methodById));
  const searched = sum(largeBytes);
  const staged = sum(({ inputs }) => inputs.reduce((total, { readBytes }) => total + readBytes, 0));
  const once = distinct(merges).reduce((total, { readBytes }) => total + readBytes, 0);
  return {
    bytes,
    memory: HELD_BYTES,
    again: [
      ...again('thresholds of whole models are searched for before the merge', measured),
      ...(merges.some((plan) => asksForCalibration(plan, methodById))
        ? [{ why: 'models are run on text before the merge', bytes: null }]
        : []),
      ...again('tensors that do not stay in memory take several passes', searched),
      ...again('several stages read them', staged - once),
    ],
  };
}

function again(why: string, bytes: number): StreamReport['again'] {
  return bytes > 0 ? [{ why, bytes }] : [];
}

function distinct(plans: readonly Plan[]): Plan['inputs'] {
  const all = plans.flatMap(({ inputs }) =>
    inputs.map((one) => [`${one.folder}\n${one.file}`, one] as const),
  );
  return [...new Map(all).values()];
}

/** Stored bytes of tensors that take more than one pass and are larger than what stays in memory. */
function largeBytes({ tensors }: Plan): number {
  return tensors.reduce((total, tensor) => {
    if (tensor.copy || !readsAgain(tensor, methodById.get(tensor.method)!)) return total;
    const bytes = storedInputs(tensor).reduce((all, { begin, end }) => all + end - begin, 0);
    return bytes > HELD_BYTES ? total + bytes : total;
  }, 0);
}
