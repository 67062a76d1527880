/**
 * A search for the settings of a recipe: CMA-ES (linalg/cma-es.ts) over weights, λ and density, the candidates of a generation
 * merged as they are read and measured side by side, by perplexity on texts or accuracy on tasks, nothing written. What was
 * measured is stored: a search that was stopped continues from there, for the same recipe, texts or tasks and seed in the same way.
 */
import { normals } from '../backend/philox';
import { AmalgamError, type ErrorReport } from '../errors';
import { formatRecipe } from '../formats/recipe-format';
import { openCmaEs } from '../linalg/cma-es';
import { methodById } from '../merge/methods';
import type { EvaluateManyReport, EvaluateManyRequest } from '../reports/evaluate';
import type {
  SearchPoint,
  SearchProgress,
  SearchReport,
  SearchRequest,
  SearchTasks,
} from '../reports/search';
import type { ScoreTasksReport, ScoreTasksRequest } from '../reports/tasks';
import { throwIfCanceled } from '../sources/cancellation';
import { beginSha256 } from '../sources/sha256';
import { openRecords, type RecordHeader } from '../store/masks';
import { taskObjective } from '../tasks/objective';
import { searchSpace } from './search-space';

interface SearchContext {
  /** Measures several merges side by side. */
  measure(request: EvaluateManyRequest): Promise<EvaluateManyReport>;
  /** Scores tasks on several merges side by side. */
  score(request: ScoreTasksRequest): Promise<ScoreTasksReport>;
  signal: AbortSignal;
  onProgress(progress: SearchProgress): void;
}

/** So small that accuracies decide, and equal ones do not leave the search without a slope. */
const TIE = 1e-6;

interface PointHeader extends RecordHeader {
  points: SearchPoint[];
}

/**
 * Searches, and returns all that was measured; the best is no worse than the recipe as it was.
 * @throws AmalgamError `Usage`, `Canceled`, and the failure of the recipe itself where it cannot be measured
 */
export async function runSearch(request: SearchRequest, context: SearchContext): Promise<SearchReport> {
  const { recipe, inputs, evaluations, seed, engine } = request;
  const begun = performance.now();
  const method = methodById.get(recipe.mergeMethod);
  if (!method)
    throw new AmalgamError('Usage', `There is no method ${recipe.mergeMethod}.`, 'Choose another.');
  const space = searchSpace(recipe, method);
  const folder = await openRecords(
    await keyOf(request),
    `search over ${space.names.join(', ')} (${recipe.mergeMethod}, seed ${seed})`,
  );
  const search = openCmaEs(space.start, 1);
  const points: SearchPoint[] = [];
  let reused = 0;
  for (let generation = 0; points.length < evaluations; generation++) {
    throwIfCanceled(context.signal);
    // the first measures the recipe as it is, the others what the search asks for
    const asked =
      generation === 0
        ? [Float64Array.from(space.start)]
        : search.ask(normals(search.population * space.start.length, [seed, generation]));
    const wanted = asked.map((point) => space.values(point));
    const name = `generation ${generation}`;
    const found = await folder.find<PointHeader>(name);
    const known = found?.header.points;
    const measured = known ?? (await (request.tasks ? scoreAll(request.tasks, wanted) : measureAll(wanted)));
    if (known) reused += known.length;
    else await folder.write<PointHeader>({ name, points: measured }, []);
    if (generation > 0) {
      search.tell(measured.map(searchLoss));
    }
    points.push(...measured);
    const rate = (points.length - reused) / ((performance.now() - begun) / 1000);
    context.onProgress({
      done: points.length,
      total: evaluations,
      points: measured,
      secondsLeft: rate > 0 ? Math.max(0, evaluations - points.length) / rate : null,
    });
  }
  const best = points.reduce((at, point, i) => (searchLoss(point) < searchLoss(points[at]!) ? i : at), 0);
  return {
    variables: space.names,
    points,
    best,
    recipe: space.recipe(points[best]!.values),
    reused,
    seconds: (performance.now() - begun) / 1000,
  };

  async function measureAll(wanted: readonly Record<string, number>[]): Promise<SearchPoint[]> {
    const { window, stride } = request;
    const { models } = await context.measure({
      targets: wanted.map((values) => ({ recipe: space.recipe(values) })),
      inputs,
      engine,
      ...(window !== undefined && { window }),
      ...(stride !== undefined && { stride }),
    });
    return models.map(({ outcomes }, i) => {
      const losses = outcomes.map((outcome) => ('report' in outcome ? outcome.report.meanNll : Number.NaN));
      throwOfFirst(outcomes);
      const mean = losses.reduce((a, b) => a + b, 0) / losses.length;
      return { values: wanted[i]!, perplexity: Number.isFinite(mean) ? Math.exp(mean) : null };
    });
  }

  async function scoreAll(
    { metric, ...asked }: SearchTasks,
    wanted: readonly Record<string, number>[],
  ): Promise<SearchPoint[]> {
    const targets = wanted.map((values) => ({ recipe: space.recipe(values) }));
    const report = await context.score({ ...asked, targets, engine });
    return report.models.map(({ tasks }, i) => {
      throwOfFirst(tasks);
      const score = taskObjective(report.tasks, tasks, metric);
      return { values: wanted[i]!, perplexity: null, ...(score && { score }) };
    });
  }

  /** Throws the error of the first merge, where none could be measured. */
  function throwOfFirst(outcomes: readonly ({ error: ErrorReport } | object)[]): void {
    const failed = outcomes.find((outcome) => 'error' in outcome);
    if (points.length > 0 || !failed || !('error' in failed)) return;
    const { code, message, hint } = failed.error;
    throw new AmalgamError(code, message, hint);
  }
}

/** Loss that the search minimizes; infinite where a merge could not be measured. */
function searchLoss({ perplexity, score }: SearchPoint): number {
  if (score) return -score.value - TIE * score.rightLogShare;
  return perplexity ?? Number.POSITIVE_INFINITY;
}

/** Everything that a search depends on but the number of evaluations. */
async function keyOf({
  recipe,
  inputs,
  tasks,
  window,
  stride,
  seed,
  engine,
}: SearchRequest): Promise<string> {
  const hash = await beginSha256();
  hash.update(new TextEncoder().encode(JSON.stringify(tasks ?? inputs)));
  return JSON.stringify(['search', 1, formatRecipe(recipe), hash.digest(), window, stride, seed, engine]);
}
