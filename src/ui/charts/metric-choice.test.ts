/** Every method with its default settings, on the sample: no picture of one color, before or after the merge, without a line with the reason. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { SAMPLES, smallSample } from '../../../e2e/disk-folder';
import { mergeInNode, planInNode } from '../../../e2e/merge-in-node';
import { parseRecipe } from '../../formats/recipe-yaml';
import type { MergeMethod } from '../../merge/method';
import { methods } from '../../merge/methods';
import { deltaStatistics } from '../../merge/prediction/delta-statistics.test.support';
import { Predictor } from '../../merge/prediction/predictor';
import { methodParameters, recipeSettings } from '../../merge/prediction/recipe-settings';
import type { Prepared } from '../../merge/tensor/prepared';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { TensorReport } from '../../reports/job';
import type { RecipeTraits } from './measured';
import { absenceOf, defaultMetric, isFlat } from './metric-choice';
import { isAwaited, type Metric, type MetricId, measure, metricById, metrics } from './metrics';

const LAYERS = 3;
const folders = Object.fromEntries(
  await Promise.all(
    ['base', 'kitchen', 'harbour', 'workshop'].map(
      async (name) =>
        [name, await smallSample(name, join(SAMPLES, name), { layers: LAYERS, narrower: 4 })] as const,
    ),
  ),
);
const ALL = ['base+kitchen', 'base+harbour', 'workshop'];

/** A recipe of a method's default settings, with as many models as it takes. */
function recipeOf({ id, base, models: { max }, modelParameters }: MergeMethod): string {
  const names = max >= 3 ? ALL : ALL.slice(3 - max);
  const given = {
    ...('weight' in modelParameters ? { weight: 1 } : {}),
    ...('density' in modelParameters ? { density: 0.2 } : {}),
  };
  return JSON.stringify({
    merge_method: id,
    ...(base === 'none' ? {} : { base_model: 'base' }),
    models: names.map((model) => ({ model, parameters: given })),
    parameters: id === 'slerp' || id === 'nearswap' ? { t: id === 'slerp' ? 0.5 : 0.001 } : {},
  });
}

/** Nothing was prepared: what is solved ahead falls back to means. */
const UNPREPARED = {
  selection: () => undefined,
  solution: () => undefined,
  rowWeights: () => undefined,
} as unknown as Prepared;

const known = new Map<string, DeltaStatistics[]>();
async function statisticsOf(names: readonly string[]): Promise<DeltaStatistics[]> {
  const key = names.join();
  const found = known.get(key);
  if (found) return found;
  const models = names.map((model) => ({ model, parameters: { weight: 1 } }));
  const recipe = { merge_method: 'task_arithmetic', base_model: 'base', models };
  const { plan, read } = await planInNode(JSON.stringify(recipe), SAMPLES, folders);
  const made = await deltaStatistics(plan, read);
  known.set(key, made);
  return made;
}

beforeAll(() => statisticsOf(ALL));

function check(traits: RecipeTraits, ids: readonly string[], reports: readonly TensorReport[]) {
  const linear = reports.filter((r) => r.layer !== null && r.shape.length > 1 && !r.copied);
  const measuredOf = (metric: Metric) =>
    linear
      .filter((r) => !isAwaited(metric, r))
      .flatMap((r) => measure(metric, r, metric.per === 'tensor' ? [] : ids) ?? []);
  const valuesOf = (metric: Metric) => measuredOf(metric).map((m) => m.value);
  const metric = metricById(defaultMetric(traits, measuredOf));
  const values = valuesOf(metric);
  if (!isFlat(metric, values)) return { metric: metric.id, flat: false };
  const absent = absenceOf(metric, traits);
  if (absent) expect(absent).toMatch(/^.{20,}\.$/);
  return { metric: metric.id, flat: true };
}

it('opens on no number whose errors hide it', () => {
  const method = methods.find((m) => m.id === 'ties')!;
  const traits: RecipeTraits = {
    method,
    parameters: methodParameters(parseRecipe(recipeOf(method)).recipe!, method),
    contributors: 3,
    hasBase: true,
  };
  const spread = (error: number) => (metric: Metric) =>
    [0.5, 0.51, 0.52, 0.53].map((value) => ({ value, error: metric.id === 'mergedSparsity' ? error : 0 }));
  expect(defaultMetric(traits, spread(0))).toBe('mergedSparsity');
  expect(defaultMetric(traits, spread(0.005))).toBe('mergedSparsity');
  expect(defaultMetric(traits, spread(0.02))).toBe('outputChange');
});

it('opens on what merging decides where runs are compared, and offers only that', () => {
  const traits = {
    method: methods.find((m) => m.id === 'slerp')!,
    parameters: {},
    contributors: 2,
    hasBase: false,
  };
  const values = [0.1, 0.2, 0.3].map((value) => ({ value, error: 0 }));
  const ofModels = (metric: Metric) => (metric.ofMerge ? [] : values);
  expect(metricById(defaultMetric(traits, ofModels)).ofMerge).toBe(false);
  expect(metricById(defaultMetric(traits, ofModels, true)).ofMerge).toBe(true);
});

describe.each(methods.map((m) => [m.id, m] as const))('%s', (_, method) => {
  it('says something before and after the merge', async () => {
    const text = recipeOf(method);
    const { recipe } = parseRecipe(text);
    const ids = recipe!.models!.map((m) => m.model);
    const statistics = await statisticsOf(ids);
    const traits: RecipeTraits = {
      method,
      parameters: methodParameters(recipe!, method),
      contributors: ids.length,
      hasBase: method.base !== 'none',
    };
    const predicted = new Predictor().predictTensors(
      statistics,
      method,
      recipeSettings(recipe!, method, LAYERS),
    );
    const before = check({ ...traits, hasBase: true }, ids, predicted);
    const { reports } = await mergeInNode(text, SAMPLES, folders, undefined, UNPREPARED);
    const after = check(traits, ids, reports);
    // where a base is, the merge is seen against it
    if (traits.hasBase) expect(after.metric).toBe(method.tells?.metric ?? 'outputChange');
    expect(before.metric).not.toBe('cosine');
    // a method is said to trim nothing only where it kept everything
    const dropped = reports.some(
      (r) => !r.copied && r.contributors.some((c) => c.norm > 0 && c.kept < r.elements),
    );
    if (dropped) expect(absenceOf(metricById('trimmed'), traits)).toBeNull();
  });
});

it('a metric that a recipe does not have says why', () => {
  const traits: RecipeTraits = {
    method: methods.find((m) => m.id === 'task_arithmetic')!,
    parameters: { lambda: 1 },
    contributors: 1,
    hasBase: false,
  };
  for (const metric of metrics) {
    for (const t of [traits, { ...traits, hasBase: true }]) {
      const why = absenceOf(metric, t);
      if (why !== null) expect(why).toMatch(/^[A-Z].*\.$/);
    }
    expect(absenceOf(metric, traits)).not.toBeNull();
  }
});

it.each([
  ['nuslerp', 2, 'NuSLERP'],
  ['model_stock', 2, 'Model Stock'],
  ['model_stock', 3, null],
  ['slerp', 1, null],
])('%s of %i models: whether there is an effect of a model', (id, contributors, title) => {
  const method = methods.find((m) => m.id === id)!;
  const why = absenceOf(metricById('modelEffect'), { method, parameters: {}, contributors, hasBase: true });
  if (title === null) expect(why).toBeNull();
  else expect(why).toMatch(new RegExp(`^${title} merges at least 2 models: .*“Effect on the text”`));
  expect(metrics.map(({ label }) => label)).toContain('Effect on the text');
});

it('each metric has the number that its row names', () => {
  const kept = { a: 40, b: 60 };
  const report: TensorReport = {
    ...{ name: 't', layer: 0, module: 'm', shape: [10, 10], dtype: 'BF16', elements: 100, copied: false },
    contributors: [
      { id: 'a', kept: kept.a, threshold: 0.25, norm: 2, keptNorm: 1, rescaledNorm: 3 },
      { id: 'b', kept: kept.b, threshold: 0.5, norm: 4, keptNorm: 2, rescaledNorm: 4 },
    ],
    ...{
      signConflict: 0.07,
      cosine: [
        [1, 0.35],
        [0.35, 1],
      ],
      baseNorm: 8,
      outputChange: 0.09,
      nonFinite: 0,
    },
    counts: {
      atBase: 11,
      shared: [
        [kept.a, 20],
        [20, kept.b],
      ],
      lost: [6, 3],
    },
  };
  const wanted: Record<MetricId, number | undefined> = {
    ...{ mergedSparsity: 0.11, outputChange: 0.09, signConflict: 0.07, cosine: 0.35, overlap: 20 / 80 },
    ...{
      trimmed: 0.6,
      lostInVote: 6 / 40,
      keptEnergy: 0.25,
      size: 0.25,
    },
    effect: undefined,
    modelEffect: undefined,
  };
  for (const metric of metrics) {
    const found = measure(metric, report, ['a', 'b']);
    expect([metric.id, found?.value]).toEqual([metric.id, wanted[metric.id]]);
    expect(measure(metric, { ...report, copied: true }, ['a', 'b'])).toBeNull();
  }
});
