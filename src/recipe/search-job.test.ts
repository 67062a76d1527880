import { beforeEach, expect, test, vi } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { methodById } from '../merge/methods';
import type { EvaluateManyReport, EvaluateManyRequest } from '../reports/evaluate';
import type { SearchPoint } from '../reports/search';
import { fakeStorage } from '../store/opfs.test.fake';
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
  return { asked, measure };
}

const search = (
  evaluations: number,
  { measure }: ReturnType<typeof bench>,
  signal = new AbortController().signal,
) => {
  const told: SearchPoint[] = [];
  const request = {
    recipe: arithmetic,
    inputs: [{ ids: [1, 2] }],
    evaluations,
    seed: 3,
    engine: 'cpu' as const,
  };
  return runSearch(request, { measure, signal, onProgress: ({ points }) => told.push(...points) }).then(
    (report) => ({ report, told }),
  );
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
