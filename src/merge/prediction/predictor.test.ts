/** Predicted reports against the reports of real merges of the sample: what was promised from statistics must come true. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { SAMPLES, smallSample } from '../../../e2e/disk-folder';
import { mergeInNode, planInNode } from '../../../e2e/merge-in-node';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { TensorReport } from '../../reports/job';
import { methodById } from '../methods';
import { resolveParameters } from '../plan/parameters';
import { deltaStatistics } from './delta-statistics.test.support';
import { type PredictedReport, sampledError } from './predicted-report';
import { Predictor } from './predictor';

const CONTRIBUTORS = ['base+kitchen', 'base+harbour', 'workshop'];
// whole tensors, as most of what is predicted is sampled from them, of four layers
const folders = Object.fromEntries(
  await Promise.all(
    ['base', 'kitchen', 'harbour', 'workshop'].map(
      async (name) => [name, await smallSample(name, join(SAMPLES, name), { layers: 4 })] as const,
    ),
  ),
);

let statistics: DeltaStatistics[];
beforeAll(async () => {
  const { plan, read } = await planInNode(recipeOf('task_arithmetic', {}, {}), SAMPLES, folders);
  statistics = await deltaStatistics(plan, read);
});

type Numbers = Record<string, number | boolean | string>;

function recipeOf(method: string, parameters: Numbers, model: Numbers, names = CONTRIBUTORS): string {
  const models = names.map((m) => ({ model: m, parameters: { weight: 1, ...model } }));
  return JSON.stringify({ merge_method: method, base_model: 'base', models, parameters });
}

/** The statistics of some of the contributors. */
function only(of: DeltaStatistics, names: readonly string[]): DeltaStatistics {
  const places = names.map((name) => CONTRIBUTORS.indexOf(name));
  const slots = [0, ...places.map((i) => i + 1)];
  return {
    ...of,
    products: slots.map((i) => slots.map((j) => of.products[i]![j]!)),
    contributors: places.map((i) => of.contributors[i]!),
    sample: { ...of.sample, changes: places.map((i) => of.sample.changes[i]!) },
  };
}

type Pairs = [PredictedReport, TensorReport][];
const known = new Map<string, Promise<Pairs>>();

/** The predicted and the real report of every tensor that both have; of the same merge they are worked out once. */
function both(...of: Parameters<typeof predictedAndMerged>): Promise<Pairs> {
  const key = JSON.stringify(of);
  if (!known.has(key)) known.set(key, predictedAndMerged(...of));
  return known.get(key)!;
}

async function predictedAndMerged(method: string, parameters: Numbers, model: Numbers, names = CONTRIBUTORS) {
  const descriptor = methodById.get(method)!;
  const own = names === CONTRIBUTORS ? statistics : statistics.map((of) => only(of, names));
  const predicted = new Predictor().predictTensors(own, descriptor, () => ({
    parameters: resolveParameters(descriptor.parameters, [parameters], '', 0).values,
    models: names.map(
      () => resolveParameters(descriptor.modelParameters, [{ weight: 1, ...model }], '', 0).values,
    ),
  }));
  const { reports } = await mergeInNode(recipeOf(method, parameters, model, names), SAMPLES, folders);
  const byName = new Map(predicted.map((r) => [r.name, r]));
  const pairs = reports.flatMap((real): Pairs => {
    const said = byName.get(real.name);
    return said && !real.copied ? [[said, real]] : [];
  });
  expect(pairs.length).toBe(reports.filter((r) => !r.copied).length);
  return pairs;
}

const within = (said: number, real: number, relative: number, absolute = 0) =>
  expect(Math.abs(said - real), `${said} for ${real}`).toBeLessThanOrEqual(
    relative * Math.abs(real) + absolute,
  );

/** A threshold of the whole model falls anywhere in a bin of a tensor: at most all of it is misjudged. */
function wholeBin(said: PredictedReport, model: number): number {
  return Math.max(...statistics.find((p) => p.name === said.name)!.contributors[model]!.histogram.counts);
}

describe.each([
  ['ties', {}, { density: 0.2 }],
  ['ties', { lambda: 0.7, rescale: 'on' }, { density: 0.6 }],
  ['ties', { semantics: 'paper' }, { density: 0.3 }],
  ['task_arithmetic', { lambda: 0.4 }, { weight: 0.5 }],
  ['dare_linear', {}, { density: 0.2 }],
  ['della', {}, { density: 0.2, epsilon: 0.1 }],
  ['breadcrumbs', { rescale: 'l1' }, { density: 0.4, gamma: 0.05 }],
] as [string, Numbers, Numbers][])('%s %o %o', (method, parameters, model) => {
  it('comes true in every tensor', async () => {
    const random = method.startsWith('da') || method.startsWith('de');
    const paper = parameters.semantics === 'paper';
    const pairs = await both(method, parameters, model);
    for (const [said, real] of pairs) {
      expect(said.predicted).toBe('merge');
      for (const [i, c] of said.contributors.entries()) {
        const truth = real.contributors[i]!;
        within(c.norm, truth.norm, 1e-5);
        within(c.kept, truth.kept, 0, random ? 5 * Math.sqrt(said.elements) : paper ? wholeBin(said, i) : 0);
        if (random || c.norm === 0) continue;
        within(c.threshold, truth.threshold, 0.125); // a bin is an eighth of an octave wide
        within(c.keptNorm!, truth.keptNorm!, paper ? 0.1 : 0.02, 0.02 * truth.norm);
      }
      for (const [i, row] of said.cosine.entries()) {
        for (const [j, cosine] of row.entries()) within(cosine, real.cosine[i]![j]!, 0, 1e-5);
      }
      // at most 4096 elements are looked at: the conflict rate scatters by less than half of √(1/4096)
      within(said.signConflict, real.signConflict, 0, 5 * 0.5 * Math.sqrt(1 / Math.min(4096, said.elements)));
    }
    const total = (of: (r: TensorReport) => number, which: 0 | 1) =>
      pairs.reduce((sum, pair) => sum + of(pair[which]) * pair[which].elements, 0) /
      pairs.reduce((sum, pair) => sum + pair[which].elements, 0);
    const exact = method === 'task_arithmetic' ? 0.05 : 0.1;
    within(
      total((r) => r.outputChange, 0),
      total((r) => r.outputChange, 1),
      exact,
    );
    within(
      total((r) => r.signConflict, 0),
      total((r) => r.signConflict, 1),
      0.1,
      0.01,
    );
  });
});

it.each([
  ['dare_linear', {}, { density: 0.2 }],
  ['dare_ties', { rescale: false }, { density: 0.4 }],
  ['della', {}, { density: 0.2, epsilon: 0.1 }],
  ['della_linear', {}, { density: 0.4, epsilon: 0.3 }],
  ['breadcrumbs', { rescale: 'l1' }, { density: 0.4, gamma: 0.05 }],
  ['ties', { lambda: 0.7, rescale: 'on' }, { density: 0.6 }],
  ['ties', { semantics: 'paper' }, { density: 0.3 }],
] as [string, Parameters<typeof both>[1], Numbers][])(
  '%s %o %o: the norm after rescaling is counted within the error that is stated',
  async (...of) => {
    let [inside, cells] = [0, 0];
    for (const [said, real] of await both(...of)) {
      for (const [i, c] of said.contributors.entries()) {
        const truth = real.contributors[i]!;
        if (c.norm === 0) continue;
        cells += 1;
        const error = c.rescaledNorm! * said.errors[i]!.norm;
        if (Math.abs(c.rescaledNorm! - truth.rescaledNorm!) <= error) inside += 1;
      }
    }
    expect(cells).toBeGreaterThan(50);
    expect(inside / cells).toBeGreaterThanOrEqual(0.95);
  },
);

it.each([
  ['ties', {}, { density: 0.2 }],
  ['ties', { semantics: 'paper' }, { density: 0.3 }],
  ['dare_ties', { rescale: false }, { density: 0.4 }],
  ['della', {}, { density: 0.2, epsilon: 0.1 }],
  ['breadcrumbs_ties', {}, { density: 0.4 }],
  ['task_arithmetic', { lambda: 0.4 }, { weight: 0.5 }],
  ['slerp', { t: 0.3 }, {}],
] as [string, Numbers, Numbers][])(
  '%s %o %o: what is counted lies within the error that is stated',
  async (...of) => {
    const pairs = await (of[0] === 'slerp' ? both(...of, ['workshop']) : both(...of));
    let [inside, cells] = [0, 0];
    const check = (said: number, real: number, error: number) => {
      cells += 1;
      if (Math.abs(said - real) <= error) inside += 1;
    };
    for (const [said, real] of pairs) {
      const { elements } = said;
      const share = (a: number, b: number, all: number) => check(a, b, sampledError(said, a, all));
      share(said.counts!.atBase! / elements, real.counts!.atBase! / elements, elements);
      for (const [i, row] of said.counts!.shared.entries()) {
        const own = row[i]!;
        if (!real.counts!.shared[i]![i] || !own) continue;
        const truth = real.counts!.shared[i]![i]!;
        if (said.counts!.lost.length > 0) {
          share(said.counts!.lost[i]! / own, real.counts!.lost[i]! / truth, own);
        }
        for (let j = i + 1; j < row.length; j++) {
          const other = said.counts!.shared[j]![j]!;
          const [u, v] = [
            own + other - row[j]!,
            truth + real.counts!.shared[j]![j]! - real.counts!.shared[i]![j]!,
          ];
          if (u > 0 && v > 0) share(row[j]! / u, real.counts!.shared[i]![j]! / v, u);
        }
      }
    }
    expect(cells).toBeGreaterThan(30);
    expect(inside / cells).toBeGreaterThanOrEqual(0.95);
  },
);

it.each([
  ['ties', {}, { density: 0.2 }],
  ['ties', { lambda: 0.7, rescale: 'on', normalize: false }, { density: 0.6, weight: -0.5 }],
  ['breadcrumbs_ties', {}, { density: 0.4, gamma: 0.1 }],
] as [string, Numbers, Numbers][])(
  '%s %o %o: where the sample is the whole tensor, it is merged as the tensor is',
  async (...of) => {
    const whole = (await both(...of)).filter(([said]) => said.sampled === said.elements);
    expect(whole.length).toBeGreaterThan(5);
    for (const [said, real] of whole) {
      expect(said.counts!.shared).toEqual(real.counts!.shared);
      expect(said.counts!.lost).toEqual(real.counts!.lost);
      expect(said.counts!.atBase).toBe(real.counts!.atBase);
      within(said.signConflict, real.signConflict, 0, 1e-9);
      within(said.outputChange, real.outputChange, 0.01);
    }
  },
);

it.each([
  ['ties', { density: 0.2 }, { density: 0.21 }],
  ['ties', { weight: 0.5 }, { weight: -0.5 }],
  ['breadcrumbs', { density: 0.5 }, { density: 0.48 }],
  ['dare_ties', { density: 0.5 }, { density: 0.6 }],
] as [string, Numbers, Numbers][])('%s: a step from %o to %o predicts what %o alone does', (method, a, b) => {
  const descriptor = methodById.get(method)!;
  const stepped = new Predictor();
  const at = (predictor: Predictor, moved: Numbers) =>
    predictor.predictTensors(statistics, descriptor, () => ({
      parameters: resolveParameters(descriptor.parameters, [{}], '', 0).values,
      models: CONTRIBUTORS.map(
        (_, i) =>
          resolveParameters(
            descriptor.modelParameters,
            [{ weight: 1, density: 0.3, ...(i ? {} : moved) }],
            '',
            0,
          ).values,
      ),
    }));
  at(stepped, a);
  expect(at(stepped, b)).toEqual(at(new Predictor(), b));
});

it('linear: the change of a weighted sum is exact', async () => {
  const pairs = await both('linear', {}, { weight: 0.8 });
  for (const [said] of pairs) expect(said.predicted).toBe('merge');
  const moved = pairs.find(([said]) => said.contributors.every((c) => c.norm > 0))![0];
  const found = statistics.find((p) => p.name === moved.name)!;
  // weights of 0.8 are normalized to a third each: W − W₀ = Σ τᵢ / 3
  const square =
    found.products
      .slice(1)
      .flatMap((row) => row.slice(1))
      .reduce((a, b) => a + b, 0) / 9;
  within(moved.outputChange, Math.sqrt(square / found.products[0]![0]!), 1e-9);
});

it.each([
  ['sce', {}],
  ['tsv_m', {}],
  ['ties', { space: 'knots' }],
])('says of other methods only what their changes are: %s', async (id, parameters) => {
  const [said] = new Predictor().predictTensors(statistics, methodById.get(id)!, () => ({
    parameters,
    models: CONTRIBUTORS.map(() => ({})),
  }));
  expect(said!.predicted).toBe('changes');
});

it('does not depend on the tile size', async () => {
  const { plan, read } = await planInNode(recipeOf('task_arithmetic', {}, {}), SAMPLES, folders);
  const small = await deltaStatistics(plan, read, 4096);
  expect(small.map((p) => [p.name, p.sample, p.contributors])).toEqual(
    statistics.map((p) => [p.name, p.sample, p.contributors]),
  );
});
