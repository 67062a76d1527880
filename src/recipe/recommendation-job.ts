/**
 * The recommended merge: every method that is worth it is solved, its λ searched for on text, and the best of what was
 * measured is merged. All results are stored (text, solved layers, λ), so that a stopped one resumes to the same bytes.
 */
import type { Backend } from '../backend/backend';
import { heldOutSize } from '../calibration/calibration';
import { type CalibrationOptions, calibrationMessage } from '../calibration/calibration-context';
import { calibrate } from '../calibration/job';
import {
  type Answer,
  continuePrompt,
  type MeasuredAround,
  measureAround,
  writeTexts,
} from '../calibration/reference-measures';
import { AmalgamError, type ErrorCode, errorReport } from '../errors';
import type { Recipe, RecipeParameters } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import { openEvaluationBackends } from '../host/backends';
import type { OpenModels } from '../host/models';
import { textSize } from '../merge/methods/importance-parameters';
import type { Plan } from '../merge/plan/plan';
import type { DestinationSpec, Progress } from '../reports/job';
import type { MergeReport, MergeRequest, RecommendedReport } from '../reports/merge';
import { deleteMasks, openRecords, type RecordHeader } from '../store/masks';
import { runMerge } from './job';
import { overallProgress, type WorkStep } from './overall-progress';

/** Candidates of the recommended merge, their work, and conclusions from their figures. Pure. */

export interface Candidate {
  title: string;
  recipe: Recipe;
}

/** Parameters of a recipe for its calibration text. */
const READING = ['calibration', 'calibration_windows', 'calibration_window'] as const;

/**
 * The methods that are tried, λ to be searched for, those that take longest first.
 * @param recipe base, contributors, and what they read
 */
export function candidateRecipes(recipe: Recipe): Candidate[] {
  const reading = pick(recipe.parameters);
  const made = (mergeMethod: string, parameters: RecipeParameters, weight: RecipeParameters): Recipe => ({
    ...recipe,
    mergeMethod,
    parameters: { ...reading, ...parameters, lambda: 'auto' },
    models: (recipe.models ?? [])
      .filter(({ model }) => model !== recipe.baseModel)
      .map(({ model, parameters: own }) => ({ model, parameters: { ...pick(own), ...weight } })),
  });
  return [
    { title: 'Gram merge, outputs matched', recipe: made('gram', { match: 'outputs' }, {}) },
    { title: 'Gram merge', recipe: made('gram', {}, {}) },
    { title: 'Gram merge of the changes', recipe: made('gram', { match: 'changes' }, {}) },
    { title: 'Task arithmetic', recipe: made('task_arithmetic', {}, { weight: 1 }) },
  ];
}

/** The recipe of a candidate with the λ that was found; a calibration text has no meaning for task arithmetic. */
export function withLambdaFound(recipe: Recipe, lambda: number): Recipe {
  const found = { ...recipe, parameters: { ...recipe.parameters, lambda } };
  if (recipe.mergeMethod !== 'task_arithmetic') return found;
  const without = (parameters: RecipeParameters) =>
    Object.fromEntries(Object.entries(parameters).filter(([name]) => !READING.some((of) => of === name)));
  return {
    ...found,
    parameters: without(found.parameters),
    models: (recipe.models ?? []).map((entry) => ({ ...entry, parameters: without(entry.parameters) })),
  };
}

function pick(parameters: RecipeParameters): RecipeParameters {
  return Object.fromEntries(
    READING.flatMap((name) => (parameters[name] === undefined ? [] : [[name, parameters[name]]])),
  );
}

/** Passes over the held-out text: values of λ on about two fifths of it, and the chosen one on the rest. */
const SEARCH_PASSES = 5 * 0.4 + 0.6;
/** Passes over what is read, with the products, of the candidates in their order. */
const PASSES = [4, 1.5];

/** Tokens that the contributors read in all, for calibration. */
function tokensRead({ parameters, models = [] }: Recipe): number {
  const { windows, length } = textSize(parameters);
  return models.length * windows * length;
}

/**
 * Work of all steps, in passes of a token through a model: text, every candidate, the comparison, the merge.
 */
export function workSteps(recipe: Recipe, candidates: number): WorkStep[] {
  const read = tokensRead(recipe);
  const size = textSize(recipe.parameters);
  const { windows } = heldOutSize({ windows: size.windows, length: 1 });
  const models = Math.max(1, recipe.models?.length ?? 1);
  const measure = models * windows * size.length;
  const tries = Array.from({ length: candidates }, (_, i): WorkStep[] => [
    { at: 1 + i, phase: 'calibrating', work: (PASSES[i] ?? 0) * read },
    { at: 1 + i, phase: 'searching', work: SEARCH_PASSES * measure },
  ]);
  return [
    { at: 0, phase: 'writing', work: 1.5 * (read + measure) },
    ...tries.flat(),
    { at: 1 + candidates, phase: 'comparing', work: (models + 1) * measure },
    { at: 2 + candidates, phase: 'merging', work: 0.1 * read },
  ];
}

/**
 * Share of each contributor's gain over the base, on its own text, that the merge keeps.
 * @param merge its losses on the texts
 */
export function gainShares(
  { base, contributors }: MeasuredAround,
  merge: readonly number[],
): (number | null)[] {
  return contributors.map(({ losses }, i) => {
    const gain = base[i]! - losses[i]!;
    return gain > 0 ? (base[i]! - merge[i]!) / gain : null;
  });
}

/**
 * The most of a contributor's gain on its own text that another contributor has there too. Where it is large the
 * contributors learned some of the same, and text they generated themselves is little evidence of how far to take them.
 */
export function overlapOf({ base, contributors }: MeasuredAround): number | null {
  const shares = contributors.flatMap(({ losses: own }, i) => {
    const gain = base[i]! - own[i]!;
    if (!(gain > 0)) return [];
    return contributors.flatMap(({ losses }, j) => (j === i ? [] : [(base[i]! - losses[i]!) / gain]));
  });
  return shares.length === 0 ? null : Math.max(...shares);
}

/** Prompt that base, contributors and merge continue. */
const PROMPT = { text: 'The', tokens: 32 };
/** Failures that leave the other candidates. */
const DISPENSABLE: ReadonlySet<ErrorCode> = new Set(['PlanHasErrors', 'LimitExceeded', 'GpuOutOfMemory']);

interface RecommendContext {
  /** The plan of a recipe, with the problems of its calibration. */
  plan(recipe: Recipe): Promise<Plan>;
  models: OpenModels;
  signal: AbortSignal;
  onProgress(progress: Progress): void;
}

/**
 * Tries the candidates, compares the best with what it is made of, and merges it.
 * @throws AmalgamError as `calibrate` and `runMerge`; `PlanHasErrors` where no candidate fits the models
 */
export async function runRecommended(
  request: MergeRequest,
  { plan: planOf, models, signal, onProgress }: RecommendContext,
): Promise<MergeReport> {
  const { recommended: _, names, ...rest } = request;
  const { engine } = request;
  const candidates = candidateRecipes(request.recipe);
  const meter = overallProgress(workSteps(request.recipe, candidates.length), onProgress);
  const optionsOf = (
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
    onProgress: (progress) => meter.report(at, title, calibrationMessage(progress), thread, threads),
  });
  const first = await cleanPlan(candidates[0]!.recipe, planOf);
  const tokens = tokensRead(request.recipe);
  const work = tokens * first.tensors.reduce((sum, { elements }) => sum + elements, 0);
  const threads = await openEvaluationBackends(engine, candidates.length, work);
  const tried: Tried[] = [];
  let around: Awaited<ReturnType<typeof measureAround>>;
  const comparison = 1 + candidates.length;
  try {
    const writers = threads.map((backend, thread) =>
      writeTexts(
        first,
        first.contributors.flatMap((_, i) => (i % threads.length === thread ? [i] : [])),
        optionsOf(0, 'Text', backend, thread, threads.length),
      ),
    );
    await allOrFirstError(writers);
    meter.end(0);
    const left = candidates.map((candidate, i) => async (backend: Backend) => {
      tried[i] = await attempt(candidate, planOf, optionsOf(1 + i, candidate.title, backend));
      meter.end(1 + i);
    });
    left.push(async (backend) => {
      around = await measureAround(first, PROMPT, optionsOf(comparison, 'Comparison', backend));
      meter.end(comparison);
    });
    const attempts = threads.map(async (backend) => {
      for (let next = left.shift(); next; next = left.shift()) await next(backend);
    });
    await allOrFirstError(attempts);
  } finally {
    for (const thread of threads) thread.close();
  }
  const chosen = bestOf(tried);
  const { title, recipe, losses } = tried[chosen]!;
  const plan = await planOf(recipe);
  const at = comparison + 1;
  const last = optionsOf(at, title);
  const solved = await calibrate(plan, last);
  const answers: Answer[] = [
    ...around!.answers.map(({ text }, i) => ({
      id: i === 0 ? 'base' : around.contributors[i - 1]!.id,
      text,
    })),
    { id: 'merge', text: await continuePrompt(plan, solved?.prepared, PROMPT, last) },
  ];
  const perplexities = (of: readonly number[]) => of.map(Math.exp);
  const compared = (): RecommendedReport => ({
    candidates: tried.map(({ losses: _, ...candidate }) => candidate),
    chosen,
    texts: around.texts,
    base: perplexities(around.base),
    contributors: around.contributors.map((of) => ({ id: of.id, perplexity: perplexities(of.losses) })),
    merge: perplexities(losses!),
    kept: gainShares(around, losses!),
    overlap: overlapOf(around),
    prompt: PROMPT.text,
    answers,
    seconds: meter.seconds(),
  });
  const destination = named(request.destination, names?.[recipe.mergeMethod]);
  // a merge that is cut off from here on is resumed as any other, and still has its comparison
  await storeComparison(destination, plan.recipe, compared());
  const report = await runMerge(plan, { ...rest, recipe, destination }, models, signal, (progress) =>
    meter.report(at, title, progress),
  );
  meter.end(at);
  await forgetComparison(destination, plan.recipe);
  return { ...report, recommended: compared() };
}

function named(destination: DestinationSpec, name: string | undefined): DestinationSpec {
  return name === undefined || !('name' in destination) ? destination : { ...destination, name };
}

/** A candidate with the losses of its merge on every text. */
type Tried = RecommendedReport['candidates'][number] & { losses?: number[] };

/** @throws AmalgamError `PlanHasErrors` with the reason of the first where none could be tried */
function bestOf(tried: readonly Tried[]): number {
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

/** A candidate with its λ; for one that the models or the device do not allow, the reason. */
async function attempt(
  { title, recipe }: Candidate,
  planOf: RecommendContext['plan'],
  options: CalibrationOptions,
): Promise<Tried> {
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  try {
    const { report } = (await calibrate(await cleanPlan(recipe, planOf), options))!;
    const { chosen, whole } = report.lambda!;
    const { perplexity, each } = whole!;
    return {
      title,
      recipe: withLambdaFound(recipe, chosen),
      perplexity,
      lambda: chosen,
      losses: each.map(Math.log),
      seconds: seconds(),
    };
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    // what another candidate may do without
    if (options.signal.aborted || !DISPENSABLE.has(code)) throw thrown;
    return { title, recipe, perplexity: null, lambda: null, reason: message, seconds: seconds() };
  }
}

/** Waits for all to end before throwing the first failure, so that nothing is left running. */
async function allOrFirstError(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

// Result of the recommended merge, stored while its merge runs: one that is resumed after a reload still has
// it.

interface ComparisonHeader extends RecordHeader {
  report: RecommendedReport;
}

const NAME = 'comparison';

function folderOf(destination: DestinationSpec, recipe: Recipe) {
  const name = 'name' in destination ? destination.name : destination.kind;
  return openRecords(
    JSON.stringify(['recommended', 1, destination.kind, name, formatRecipe(recipe)]),
    `Comparison of the recommended merge ${name}, until it is finished`,
  );
}

/** Stores the comparison of a merge that begins. @throws AmalgamError `StorageUnavailable`, `StorageFull`, `StorageFailed` */
async function storeComparison(
  destination: DestinationSpec,
  recipe: Recipe,
  report: RecommendedReport,
): Promise<void> {
  await (await folderOf(destination, recipe)).write<ComparisonHeader>({ name: NAME, report }, []);
}

/** Forgets it. */
async function forgetComparison(destination: DestinationSpec, recipe: Recipe): Promise<void> {
  await deleteMasks((await folderOf(destination, recipe)).id);
}

/** The report of a merge that was resumed, with its comparison where it was a recommended one. */
export async function withComparison(
  report: MergeReport,
  { destination }: Pick<MergeRequest, 'destination'>,
): Promise<MergeReport> {
  const folder = await folderOf(destination, report.recipe);
  const found = await folder.find<ComparisonHeader>(NAME);
  await deleteMasks(folder.id);
  return found ? { ...report, recommended: found.header.report } : report;
}
