import { beforeEach, expect, test, vi } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { methodById } from '../merge/methods';
import type { EvaluateManyReport, EvaluateManyRequest } from '../reports/evaluate';
import type { SearchPoint, SearchTasks } from '../reports/search';
import type { ScoreTasksReport, ScoreTasksRequest } from '../reports/tasks';
import { fakeStorage } from '../store/opfs.test.fake';
import { aggregate } from '../tasks/metrics';
import { runSearch } from './search-job';
import { searchSpace } from './search-space';

const recipe = (
  mergeMethod: string,
  parameters: Recipe['parameters'],
  own: Recipe['parameters'],
): Recipe => ({
  mergeMethod,
  baseModel: 'base',
  models: [
    { model: 'a', parameters: own },
    { model: 'b', parameters: own },
  ],
  parameters,
  amalgam: {},
});
const arithmetic = recipe('task_arithmetic', { lambda: 1 }, { weight: 1 });

beforeEach(() => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
});

test('searches for weights; for λ where there are none or they are divided by; for density where changes are trimmed', () => {
  const names = (r: Recipe) => searchSpace(r, methodById.get(r.mergeMethod)!).names;
  expect(names(arithmetic)).toEqual(['weight 1', 'weight 2']);
  expect(names(recipe('gram', { lambda: 'auto' }, {}))).toEqual(['lambda']);
  expect(names(recipe('ties', { normalize: true }, { weight: 1, density: 0.2 }))).toEqual([
    'weight 1',
    'weight 2',
    'lambda',
    'density',
  ]);
  expect(names(recipe('ties', { normalize: false }, { weight: 1, density: 1 }))).toEqual([
    'weight 1',
    'weight 2',
  ]);
  expect(() => names(recipe('karcher', {}, {}))).toThrow(/neither weights nor λ/);
});

test('the values of the start are those of the recipe', () => {
  const ties = recipe('ties', { lambda: 0.7, normalize: true }, { weight: 0.4, density: 0.3 });
  const space = searchSpace(ties, methodById.get('ties')!);
  expect(space.values(space.start)).toEqual({ 'weight 1': 0.4, 'weight 2': 0.4, lambda: 0.7, density: 0.3 });
  expect(space.recipe(space.values(space.start))).toEqual(ties);
});

/** A valley with its floor at weights 0.6 and 1.3; counts the merges that were measured. */
function bench() {
  const asked: Recipe[] = [];
  const measure = async ({ targets }: EvaluateManyRequest): Promise<EvaluateManyReport> => {
    const models = targets.map((target) => {
      const { recipe: candidate } = target as { recipe: Recipe };
      asked.push(candidate);
      const [a, b] = candidate.models!.map(({ parameters }) => Number(parameters.weight)) as [number, number];
      const meanNll = 1 + (a - 0.6) ** 2 + (b - 1.3) ** 2;
      return { outcomes: [{ report: { meanNll } }], bytes: 1 };
    });
    return { models } as unknown as EvaluateManyReport;
  };
  /** The same valley on a task of four items, two of which no merge gets right. */
  const score = async ({ targets }: ScoreTasksRequest): Promise<ScoreTasksReport> => {
    const found = await measure({ targets, inputs: [], engine: 'cpu' });
    const models = found.models.map(({ outcomes: [outcome] }) => {
      const { meanNll } = (outcome as { report: { meanNll: number } }).report;
      const items = [1.02, 1.2, 0, 0].map((floor, docId) => {
        const acc = meanNll < floor ? 1 : 0;
        return { docId, target: 0, loglikelihoods: [-meanNll, -floor], isGreedy: [], values: { acc } };
      });
      return { tasks: [{ score: { metrics: aggregate(['acc'], items), items } }] };
    });
    return { tasks: [{ task: 't', metrics: ['acc'] }], models } as unknown as ScoreTasksReport;
  };
  return { asked, measure, score };
}

const search = (evaluations: number, { measure, score }: ReturnType<typeof bench>, tasks?: SearchTasks) => {
  const { signal } = new AbortController();
  const told: SearchPoint[] = [];
  const request = {
    recipe: arithmetic,
    inputs: [{ ids: [1, 2] }],
    ...(tasks && { tasks }),
    evaluations,
    seed: 3,
    engine: 'cpu' as const,
  };
  return runSearch(request, {
    measure,
    score,
    signal,
    onProgress: ({ points }) => told.push(...points),
  }).then((report) => ({ report, told }));
};

test('finds the floor of a valley, is never worse than where it began, and tells every point', async () => {
  const { report, told } = await search(60, bench());
  const [first] = report.points;
  expect(first!.values).toEqual({ 'weight 1': 1, 'weight 2': 1 });
  const best = report.points[report.best]!;
  expect(best.perplexity).toBe(Math.min(...report.points.map(({ perplexity }) => perplexity!)));
  expect(best.values['weight 1']).toBeCloseTo(0.6, 1);
  expect(best.values['weight 2']).toBeCloseTo(1.3, 1);
  expect(report.recipe.models!.map(({ parameters }) => parameters.weight)).toEqual(
    Object.values(best.values),
  );
  expect(told).toEqual(report.points);
});

test('goes on from what was measured, in the same way', async () => {
  const whole = await search(40, bench());
  vi.stubGlobal('navigator', fakeStorage().navigator);
  await search(15, bench());
  const rest = bench();
  const { report } = await search(40, rest);
  expect(report.points).toEqual(whole.report.points);
  expect(report.reused).toBe(19);
  expect(rest.asked.length).toBe(report.points.length - 19);
});

test('goes by accuracy on tasks; among equal ones the right answers’ probability shows the way', async () => {
  const tasks = { tasks: [{ name: 't' }], limit: 4, fewshot: 0, metric: 'acc' };
  const { report } = await search(60, bench(), tasks);
  const [first] = report.points;
  expect(first!.score!.value).toBe(0);
  const best = report.points[report.best]!;
  expect(best.perplexity).toBeNull();
  expect(best.score!.value).toBe(0.5);
  // 0, 0, 1, 1: deviation √(1/3), over √4
  expect(best.score!.stderr).toBeCloseTo(Math.sqrt(1 / 12), 12);
  expect(best.values['weight 1']).toBeCloseTo(0.6, 1);
  await expect(search(5, bench(), { ...tasks, metric: 'acc_norm' })).rejects.toThrow(/t has no acc_norm/);
});
