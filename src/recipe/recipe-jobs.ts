/** Planning and merging a recipe, of one document or of several. */

import { copyOf, formatModelRef, type Recipe } from '../formats/recipe';
import { recipeRepositories } from '../formats/recipe-models';
import type { OpenModels } from '../host/models';
import { cachedBytes } from '../host/storage';
import { collectProblems } from '../inputs/problems';
import { methodById } from '../merge/methods';
import { asksForCalibration } from '../merge/plan/importance-kind';
import type { Plan } from '../merge/plan/plan';
import { planReport } from '../merge/plan/plan-report';
import { makePlan } from '../merge/plan/recipe-plan';
import { readTaken } from '../merge/vocabulary/vocabulary';
import type { Progress } from '../reports/job';
import type { MergeReport, MergeRequest } from '../reports/merge';
import type { PlanReport } from '../reports/plan';
import type { ShardWatch } from './verification-job';

/** The plan of a recipe of opened models; of several stages only the last. */
export async function planRecipe(recipe: Recipe, models: OpenModels): Promise<Plan> {
  const plan = await makePlan(recipe, (ref) => models.open(ref), methodById, await cachedBytes());
  // an adapter that is worked out by a merge of models has what that one has
  const { calibration, cut } = plan;
  const merge = (calibration ?? cut)?.plan ?? plan;
  if (!asksForCalibration(merge, methodById)) return plan;
  const { withCalibrationProblems } = await import('../calibration/plan-problems');
  const checked = await withCalibrationProblems(merge, models);
  if (!calibration && !cut) return checked;
  const known = new Set(merge.problems);
  const problems = collectProblems();
  for (const problem of [...plan.problems, ...checked.problems.filter((one) => !known.has(one))])
    problems.add(problem);
  return {
    ...plan,
    problems: problems.list(),
    peakBytes: Math.max(plan.peakBytes, checked.peakBytes),
    ...(calibration && { calibration: { ...calibration, plan: checked } }),
    ...(cut && { cut: { ...cut, plan: checked } }),
  };
}

/** The same for a recipe that is going to be merged: with what a tokenizer that is only fetched then has to say. */
async function planToMerge(recipe: Recipe, models: OpenModels): Promise<Plan> {
  const plan = await planRecipe(recipe, models);
  return (await readTaken(plan.extras, models.file)) ? planRecipe(recipe, models) : plan;
}

function isClean({ problems }: Plan): boolean {
  return problems.every(({ severity }) => severity !== 'error');
}

/** Path that stands for a LoRA which is stored nowhere. */
const MADE = 'the merged LoRA';

/**
 * The plan of what a recipe gives to run. LoRAs that become a LoRA run as the base with that one on top, where the recipe names
 * the base and it is open, or as the merge of models that they are exactly; else it is {@link planRecipe}'s.
 */
export async function planToRun(recipe: Recipe, models: OpenModels): Promise<Plan> {
  const plan = await planRecipe(recipe, models);
  if (recipe.amalgam.output !== 'adapter' || !isClean(plan)) return plan;
  const merge = plan.calibration ?? plan.cut;
  if (merge) return merge.plan;
  const { baseRef, plannedAdapter } = await import('../merge/plan/adapter-output');
  const base = baseRef(recipe);
  if (!base) return plan;
  const paths = [...new Set(plan.inputs.map(({ folder }) => folder))];
  const opened = await Promise.all(paths.map((path) => models.open(path)));
  const adapters = opened.filter((model) => model.kind === 'adapter');
  const made = plannedAdapter(plan, adapters, MADE);
  const model = formatModelRef({ model: base, adapter: { path: MADE } });
  return makePlan(
    copyOf(model),
    async (path) => (path === MADE ? made : models.open(path)),
    methodById,
    await cachedBytes(),
  );
}

/**
 * The plan of a recipe and all its stages, as it is shown.
 * @param merges whether it is going to be merged
 */
export async function recipePlanReport(
  recipe: Recipe,
  models: OpenModels,
  merges = false,
): Promise<PlanReport> {
  const more = async (plans: readonly Plan[]) =>
    recipeRepositories(recipe).every((name) => name.startsWith('samples/'))
      ? {}
      : (await import('./hub-plan')).hubReport(recipe, plans, models);
  if (!recipe.stages) {
    const plan = await (merges ? planToMerge : planRecipe)(recipe, models);
    return { ...planReport(plan), ...(await more([plan])) };
  }
  const { planStages, stagedReport } = await import('./stages-plan');
  const staged = await planStages(recipe, models, methodById, await cachedBytes());
  const plans = [...staged.stages.map(({ plan }) => plan), ...(staged.result ? [staged.result] : [])];
  return { ...stagedReport(staged), ...(await more(plans)) };
}

/** Writes a plan whose change is cut to a LoRA. */
export type CutToLora = (
  plan: Plan & Required<Pick<Plan, 'cut'>>,
  request: MergeRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
) => Promise<MergeReport>;

/**
 * Merges a recipe with all its stages.
 * @param watch gets what the shards of the result get
 * @param loadCut loads what cuts a change, where that may be asked for
 * @throws AmalgamError as `runMerge` and `runStages`
 */
export async function mergeRecipe(
  request: MergeRequest,
  given: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
  watch?: ShardWatch,
  loadCut?: () => Promise<{ cutToLora: CutToLora }>,
): Promise<MergeReport> {
  const models: OpenModels = request.stream ? { ...given, passing: true } : given;
  if (request.part) (await import('./output-part')).requireParts(request.recipe);
  if (request.recipe.stages) {
    const { runStages } = await import('./stages-job');
    return runStages(request, models, signal, onProgress, watch);
  }
  const plan = await planToMerge(request.recipe, models);
  const { cut } = plan;
  if (cut && loadCut) {
    const { cutToLora } = await loadCut();
    return cutToLora({ ...plan, cut }, request, models, signal, onProgress);
  }
  const { runMerge } = await import('./job');
  const report = await runMerge(plan, request, models, signal, onProgress, undefined, watch);
  if (!request.resume) return report;
  return (await import('./recommended-merge')).withTable(report, request);
}
