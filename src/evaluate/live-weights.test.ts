import { fileURLToPath } from 'node:url';
import { afterAll, expect, test, vi } from 'vitest';
import { calibrateInNode } from '../../e2e/calibrate-in-node';
import { smallSample } from '../../e2e/disk-folder';
import { planInNode } from '../../e2e/merge-in-node';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { adaptableWeights } from '../forward/model';
import { openRunner, type Runner } from '../forward/runner';
import { methods } from '../merge/methods';
import { claimTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { findFile } from '../sources/model-folder';
import { fakeStorage } from '../store/opfs.test.fake';
import { openLiveWeights } from './live-weights';
import { openPlannedWeights } from './planned-weights';

vi.stubGlobal('navigator', fakeStorage().navigator);
afterAll(() => vi.unstubAllGlobals());

const SAMPLES = fileURLToPath(new URL('../../public/samples', import.meta.url));
const folders = Object.fromEntries(
  await Promise.all(
    ['base', 'kitchen', 'harbour', 'workshop'].map(
      async (name) =>
        [name, await smallSample(name, `${SAMPLES}/${name}`, { layers: 2, narrower: 4 })] as const,
    ),
  ),
);
const config = await (async () => {
  const file = findFile(folders.base!, 'config.json')!.open();
  const bytes = await file.read(0, file.byteLength);
  return parseModelConfig(new TextDecoder().decode(bytes), 'config.json');
})();
const architecture = resolveArchitecture(config);
const IDS = Array.from({ length: 40 }, (_, i) => (i * 37 + 11) % 250);
const RESIDENT = { residentBytes: 2 ** 30 };

/** What a parameter without a default gets. */
const GIVEN: Readonly<Record<string, number>> = { t: 0.3, weight: 0.7, density: 0.5 };

interface Case {
  id: string;
  models: readonly string[];
  weights: readonly number[];
  lambda?: number;
  /** Default float32, in which what is written is not rounded. */
  dtype?: 'bfloat16';
}

function recipeOf({ id, models, weights, lambda, dtype }: Case): string {
  const method = methods.find((one) => one.id === id)!;
  const given = Object.keys(method.parameters).flatMap((name) =>
    name in GIVEN ? [`${name}: ${GIVEN[name]}`] : [],
  );
  if (lambda !== undefined) given.push(`lambda: ${lambda}`);
  if (id === 'gram') given.push('match: changes');
  const list = models.map((model, i) => `{model: ${model}, parameters: {weight: ${weights[i]}}}`);
  return `merge_method: ${id}\nbase_model: base\ndtype: ${dtype ?? 'float32'}\nmodels: [${list.join(', ')}]\nparameters: {${given.join(', ')}}\n`;
}

async function planned(one: Case) {
  const recipe = recipeOf(one);
  const { plan, read } = await planInNode(recipe, SAMPLES, folders);
  const calibrated =
    one.id === 'gram' ? await calibrateInNode(recipe, { root: SAMPLES, folders }) : undefined;
  return { plan, read, prepared: calibrated?.prepared };
}

async function lossesOf(runner: Runner): Promise<Float64Array> {
  return (await runner.pass({ sequences: [{ ids: IDS, from: 1 }], output: 'loss' })).losses[0]!;
}

/** A live model at `from` that becomes `to` between two passes, beside a model opened at `to`. */
async function turned(from: Case, to: Case) {
  const [first, second] = [await planned(from), await planned(to)];
  const engine = createCpuBackend();
  let bytesRead = 0;
  const read: typeof first.read = (ref, begin, end) => {
    bytesRead += end - begin;
    return first.read(ref, begin, end);
  };
  const stored = new Map(first.plan.tensors.map((tensor) => [tensor.name, tensor]));
  const factored = adaptableWeights(architecture, claimTensors(architecture, stored));
  const weights = await openLiveWeights(first.plan, [engine], read, factored, false, first.prepared);
  const live = openRunner(engine, architecture, weights, RESIDENT);
  const before = await lossesOf(live);
  const opening = bytesRead;
  const changed = await weights.become(second.plan, second.prepared);
  await live.renew(changed);
  const after = await lossesOf(live);
  const again = bytesRead - opening;
  live.close();
  weights.close();
  engine.close();

  const fresh = createCpuBackend();
  const written = await openPlannedWeights(second.plan, [fresh], second.read, false, second.prepared);
  const runner = openRunner(fresh, architecture, written, RESIDENT);
  const expected = await lossesOf(runner);
  runner.close();
  written.close();
  fresh.close();
  const difference = Math.max(...after.map((loss, i) => Math.abs(loss - expected[i]!)));
  return { before, after, expected, difference, changed, again };
}

const MODELS = ['base+kitchen', 'base+harbour', 'workshop'];

test.each(
  methods
    .filter(({ id }) => id !== 'passthrough')
    .map(({ id, models, modelParameters }) => [id, models.max, 'weight' in modelParameters] as const),
)('%s: a recipe that changes in use gives what the changed one writes', async (id, most, weighs) => {
  const models = MODELS.slice(0, most);
  const { before, after, difference } = await turned(
    { id, models, weights: [0.7, 0.7, 0.7] },
    { id, models, weights: [0.2, 1.1, 0.5], ...(id === 'gram' && { lambda: 0.5 }) },
  );
  expect(difference).toBeLessThan(1e-5);
  if (weighs) expect(after).not.toEqual(before);
});

test.each([
  ['task_arithmetic', [0.2, 1.1], 0.4],
  ['task_arithmetic', [0, 0], 1],
  ['linear', [0.25, 0.75], undefined],
] as const)(
  '%s of LoRAs at %j, λ %s: weights are scales, and no stored weight is read again',
  async (id, weights, lambda) => {
    const at = (dtype?: 'bfloat16') => {
      const one = { id, models: MODELS.slice(0, 2), ...(dtype && { dtype }) };
      return turned(
        { ...one, weights: [0.7, 0.7] },
        { ...one, weights, ...(lambda !== undefined && { lambda }) },
      );
    };
    const { difference, before, after } = await at();
    expect(difference).toBeLessThan(1e-5);
    expect(after).not.toEqual(before);
    // as the base is stored, no tensor has another dtype than it
    const { changed, again, difference: rounding } = await at('bfloat16');
    expect(rounding).toBeLessThan(0.02);
    expect(changed.weights).toEqual(new Set());
    expect(changed.updates.size).toBeGreaterThan(0);
    expect(again).toBe(0);
  },
);
