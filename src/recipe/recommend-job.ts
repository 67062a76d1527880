/**
 * The recommended merge: every method that is worth it is solved, its λ searched for on text, and the best of what was
 * measured is merged. All that is worked out is kept (text, solved layers, λ), so that one that was stopped goes on from there to the same bytes.
 */
import type { Backend } from '../backend/backend';
import { type CalibrationOptions, calibrationMessage } from '../calibration/calibration-context';
import { calibrate } from '../calibration/job';
import { measureAround } from '../calibration/measure-around';
import { writeTexts } from '../calibration/write-texts';
import { AmalgamError, type ErrorCode, errorFacts } from '../errors';
import { runGeneration } from '../evaluate/generate-job';
import type { Recipe } from '../formats/recipe';
import { openEvaluationBackends } from '../host/backends';
import type { OpenModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/make-plan';
import type { Plan } from '../merge/plan/plan';
import type { Progress } from '../reports/job';
import type { MergeReport, MergeRequest, RecommendedReport } from '../reports/merge';
import { runMerge } from './job';
import { overallProgress } from './overall-progress';
import {
  type Candidate,
  candidateRecipes,
  keptShares,
  overlapOf,
  tokensRead,
  withLambdaFound,
  workSteps,
} from './recommend';

/** Tokens that each model writes behind the prompt. */
const ANSWER_TOKENS = 32;
const PROMPT = 'The';
/** Failures that leave the other candidates. */
const DISPENSABLE: ReadonlySet<ErrorCode> = new Set(['PlanHasErrors', 'LimitExceeded', 'GpuOutOfMemory']);

export interface RecommendContext {
  /** The plan of a recipe, with what is said of the work ahead. */
  plan(recipe: Recipe): Promise<Plan>;
  models: OpenModels;
  signal: AbortSignal;
  onProgress(progress: Progress): void;
}

/**
 * Tries the candidates, merges the best, and compares it with what it was made of.
 * @throws AmalgamError as `calibrate` and `runMerge`; `PlanHasErrors` where no candidate fits the models
 */
export async function runRecommended(
  request: MergeRequest,
  { plan: planOf, models, signal, onProgress }: RecommendContext,
): Promise<MergeReport> {
  const { recommended: _, ...rest } = request;
  const { engine } = request;
  const candidates = candidateRecipes(request.recipe);
  const meter = overallProgress(workSteps(request.recipe, candidates.length), onProgress);
  const ahead = (
    at: number,
    title: string,
    backend?: Backend,
    thread = 0,
    threads = 1,
  ): CalibrationOptions => ({
    models,
    engine,
    signal,
    ...(backend && { backend }),
    onProgress: (progress) => meter.tell(at, title, calibrationMessage(progress), thread, threads),
  });
  const first = await cleanPlan(candidates[0]!.recipe, planOf);
  const tokens = tokensRead(request.recipe);
  const work = tokens * first.tensors.reduce((sum, { elements }) => sum + elements, 0);
  const threads = await openEvaluationBackends(engine, candidates.length, work);
  const tried: RecommendedReport['candidates'] = [];
  try {
    const writers = threads.map((backend, thread) =>
      writeTexts(
        first,
        first.contributors.flatMap((_, i) => (i % threads.length === thread ? [i] : [])),
        ahead(0, 'Text', backend, thread, threads.length),
      ),
    );
    await allOrFirstError(writers);
    meter.end(0);
    const left = [...candidates.entries()];
    const attempts = threads.map(async (backend) => {
      for (let next = left.shift(); next; next = left.shift()) {
        const [i, candidate] = next;
        tried[i] = await attempt(candidate, planOf, ahead(1 + i, candidate.title, backend));
        meter.end(1 + i);
      }
    });
    await allOrFirstError(attempts);
  } finally {
    for (const thread of threads) thread.close();
  }
  const chosen = bestOf(tried);
  const { recipe, title } = tried[chosen]!;
  const plan = await planOf(recipe);
  const at = 1 + candidates.length;
  const report = await runMerge(plan, { ...rest, recipe }, models, signal, (progress) =>
    meter.tell(at, title, progress),
  );
  meter.end(at);
  const last = ahead(at + 1, 'Comparison');
  const solved = await calibrate(plan, last);
  const around = await measureAround(plan, solved?.prepared, first, last);
  const answers: RecommendedReport['answers'] = [];
  const single = (model: string) =>
    makePlan(
      { mergeMethod: 'passthrough', models: [{ model, parameters: {} }], parameters: {}, amalgam: {} },
      (ref) => models.open(ref),
      methodById,
    );
  const writers = [
    { id: 'base', plan: await single(plan.recipe.baseModel!), exact: true },
    ...(await Promise.all(
      plan.contributors.map(async (id) => ({ id, plan: await single(id), exact: true })),
    )),
    { id: 'merge', plan, exact: false, ...(solved?.prepared && { prepared: solved.prepared }) },
  ];
  for (const { id, ...writer } of writers) {
    const { text } = await runGeneration(
      {
        target: { recipe },
        prompt: PROMPT,
        chat: false,
        maxTokens: ANSWER_TOKENS,
        temperature: 0,
        topP: 1,
        seed: 0,
        engine: request.engine,
      },
      { ...writer, models, engine: request.engine, signal, onProgress: () => undefined },
    );
    answers.push({ id, text });
  }
  const perplexities = (losses: readonly number[]) => losses.map(Math.exp);
  return {
    ...report,
    recommended: {
      candidates: tried,
      chosen,
      texts: around.texts,
      base: perplexities(around.base),
      contributors: around.contributors.map(({ id, losses }) => ({ id, perplexity: perplexities(losses) })),
      merge: perplexities(around.merge),
      kept: keptShares(around),
      overlap: overlapOf(around),
      prompt: PROMPT,
      answers,
      seconds: meter.seconds(),
    },
  };
}

/** @throws AmalgamError `PlanHasErrors` with the reason of the first where none could be tried */
function bestOf(tried: RecommendedReport['candidates']): number {
  const measured = tried.flatMap(({ perplexity }, at) => (perplexity === null ? [] : [{ perplexity, at }]));
  if (measured.length === 0) {
    throw new AmalgamError(
      'PlanHasErrors',
      tried[0]?.reason ?? 'No method fits these models.',
      'Change the models, or choose a method yourself.',
    );
  }
  return measured.reduce((a, b) => (b.perplexity < a.perplexity ? b : a)).at;
}

async function cleanPlan(recipe: Recipe, planOf: RecommendContext['plan']): Promise<Plan> {
  const plan = await planOf(recipe);
  const wrong = plan.problems.find(({ severity }) => severity === 'error');
  if (wrong) throw new AmalgamError('PlanHasErrors', wrong.message, wrong.remedy);
  return plan;
}

/** A candidate with its λ; one that the models or the device do not allow says why. */
async function attempt(
  { title, recipe }: Candidate,
  planOf: RecommendContext['plan'],
  options: CalibrationOptions,
): Promise<RecommendedReport['candidates'][number]> {
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  try {
    const { report } = (await calibrate(await cleanPlan(recipe, planOf), options))!;
    const { chosen, curve } = report.lambda!;
    const { perplexity } = curve.find(({ lambda }) => lambda === chosen)!;
    return { title, recipe: withLambdaFound(recipe, chosen), perplexity, lambda: chosen, seconds: seconds() };
  } catch (thrown) {
    const { code, message } = errorFacts(thrown);
    // what another candidate may do without
    if (options.signal.aborted || !DISPENSABLE.has(code)) throw thrown;
    return { title, recipe, perplexity: null, lambda: null, reason: message, seconds: seconds() };
  }
}

/** Waits for all to end before the first failure is told: nothing goes on behind its back. */
async function allOrFirstError(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}
