/** Predicted reports against the reports of real merges of the sample: what was promised from profiles must come true. */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { mergeInNode, planInNode } from '../../../e2e/merge-in-node';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { TensorReport } from '../../reports/job';
import type { DeltaStatistics } from '../../reports/profile';
import { methodById } from '../methods';
import { resolveParameters } from '../plan/parameters';
import { prepareStatistics } from './contributor-selection';
import { measureDeltaStatistics } from './delta-statistics';
import { predict } from './predict';
import { type PredictedReport, plainReport } from './predicted-report';

const samples = fileURLToPath(new URL('../../../public/samples', import.meta.url));
const CONTRIBUTORS = ['base+kitchen', 'base+harbour', 'workshop'];
const folders = { base: 'base', kitchen: 'kitchen', harbour: 'harbour', workshop: 'workshop' };

let profiles: DeltaStatistics[];
beforeAll(async () => {
  const { plan, read } = await planInNode(recipeOf('task_arithmetic', {}, {}), samples, folders);
  profiles = await measureDeltaStatistics({ plan, engine: createCpuBackend(), read });
}, 60_000);

type Numbers = Record<string, number | boolean | string>;

function recipeOf(method: string, parameters: Numbers, model: Numbers): string {
  const models = CONTRIBUTORS.map((m) => ({ model: m, parameters: { weight: 1, ...model } }));
  return JSON.stringify({ merge_method: method, base_model: 'base', models, parameters });
}

/** The predicted and the real report of every tensor that both have. */
async function both(method: string, parameters: Numbers, model: Numbers) {
  const descriptor = methodById.get(method)!;
  const predicted = predict(profiles.map(prepareStatistics), descriptor, () => ({
    parameters: resolveParameters(descriptor.parameters, [parameters], '', 0).values,
    models: CONTRIBUTORS.map(
      () => resolveParameters(descriptor.modelParameters, [{ weight: 1, ...model }], '', 0).values,
    ),
  }));
  const { reports } = await mergeInNode(recipeOf(method, parameters, model), samples, folders);
  const byName = new Map(predicted.map((r) => [r.name, r]));
  const pairs = reports.flatMap((real): [PredictedReport, TensorReport][] => {
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
  return Math.max(...profiles.find((p) => p.name === said.name)!.contributors[model]!.histogram.counts);
}

describe.each([
  ['ties', {}, { density: 0.2 }],
  ['ties', { lambda: 0.7, rescale: 'on' }, { density: 0.6 }],
  ['ties', { semantics: 'paper' }, { density: 0.3 }],
  ['task_arithmetic', { lambda: 0.4 }, { weight: 0.5 }],
  ['dare_linear', {}, { density: 0.4 }],
  ['della', {}, { density: 0.5, epsilon: 0.2 }],
  ['breadcrumbs', {}, { density: 0.5, gamma: 0.05 }],
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
      // at most 1024 elements are looked at: the conflict rate scatters by less than half of √(1/1024)
      within(said.signConflict, real.signConflict, 0, 5 * 0.5 * Math.sqrt(1 / Math.min(1024, said.elements)));
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
  ['ties', { density: 0.2 }, { density: 0.21 }],
  ['ties', { weight: 0.5 }, { weight: -0.5 }],
  ['breadcrumbs', { density: 0.5 }, { density: 0.48 }],
  ['dare_ties', { density: 0.5 }, { density: 0.6 }],
] as [string, Numbers, Numbers][])('%s: a step from %o to %o predicts what %o alone does', (method, a, b) => {
  const descriptor = methodById.get(method)!;
  const stepped = profiles.map(prepareStatistics);
  const at = (prepared: typeof stepped, moved: Numbers) =>
    predict(prepared, descriptor, () => ({
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
    })).map(plainReport);
  at(stepped, a);
  expect(at(stepped, b)).toEqual(at(profiles.map(prepareStatistics), b));
});

it('linear: the change of a weighted sum is exact', async () => {
  const pairs = await both('linear', {}, { weight: 0.8 });
  for (const [said] of pairs) expect(said.predicted).toBe('merge');
  const moved = pairs.find(([said]) => said.contributors.every((c) => c.norm > 0))![0];
  const profile = profiles.find((p) => p.name === moved.name)!;
  // weights of 0.8 are normalised to a third each: W − W₀ = Σ τᵢ / 3
  const square =
    profile.products
      .slice(1)
      .flatMap((row) => row.slice(1))
      .reduce((a, b) => a + b, 0) / 9;
  within(moved.outputChange, Math.sqrt(square / profile.products[0]![0]!), 1e-9);
});

it('says of other methods only what their changes are', async () => {
  const [said] = predict(profiles.map(prepareStatistics), methodById.get('karcher')!, () => ({
    parameters: {},
    models: CONTRIBUTORS.map(() => ({})),
  }));
  expect(said!.predicted).toBe('changes');
});

it('does not depend on the tile size', async () => {
  const { plan, read } = await planInNode(recipeOf('task_arithmetic', {}, {}), samples, folders);
  const small = await measureDeltaStatistics({ plan, engine: createCpuBackend(), read, tileElements: 4096 });
  expect(small.map((p) => [p.name, p.sample, p.contributors])).toEqual(
    profiles.map((p) => [p.name, p.sample, p.contributors]),
  );
});
