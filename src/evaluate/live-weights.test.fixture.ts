/** Models whose recipe changes in use, of the samples made small. */
import { fileURLToPath } from 'node:url';
import { calibrateInNode } from '../../e2e/calibrate-in-node';
import { smallSample } from '../../e2e/disk-folder';
import { planInNode } from '../../e2e/merge-in-node';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { openRunner, type Runner } from '../forward/runner';
import { methods } from '../merge/methods';
import { resolveArchitecture } from '../models/resolution';
import { findFile } from '../sources/model-folder';
import { openLiveWeights } from './live-weights';
import { openPlannedWeights } from './planned-weights';
import { keptApart } from './running-model';

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
const onCpu = async () => createCpuBackend();
const RESIDENT = { residentBytes: 2 ** 30 };

/** What a parameter without a default gets. */
const GIVEN: Readonly<Record<string, number>> = { t: 0.3, weight: 0.7, density: 0.5 };

export interface Case {
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

export async function planned(one: Case) {
  const recipe = recipeOf(one);
  const { plan, read } = await planInNode(recipe, SAMPLES, folders);
  const calibrated =
    one.id === 'gram' ? await calibrateInNode(recipe, { root: SAMPLES, folders }) : undefined;
  return { plan, read, prepared: calibrated?.prepared };
}

async function lossesOf(runner: Runner): Promise<Float64Array> {
  return (await runner.pass({ sequences: [{ ids: IDS, from: 1 }], output: 'loss' })).losses[0]!;
}

/** Of the samples: two LoRAs and a whole contributor. */
export const MODELS = ['base+kitchen', 'base+harbour', 'workshop'];

/** A live model at `from` that becomes `to` between two passes, beside a model opened at `to`. */
export async function turned(from: Case, to: Case, roomBytes = 0, open: () => Promise<Backend> = onCpu) {
  const [first, second] = [await planned(from), await planned(to)];
  const engine = await open();
  let bytesRead = 0;
  const stored = new Set<string>();
  const read: typeof first.read = (ref, begin, end) => {
    bytesRead += end - begin;
    stored.add(ref.key);
    return first.read(ref, begin, end);
  };
  const apart = keptApart(first.plan, architecture, roomBytes);
  const weights = await openLiveWeights(first.plan, [engine], read, apart, false, first.prepared);
  const live = openRunner(engine, architecture, weights, RESIDENT);
  const before = await lossesOf(live);
  const opening = bytesRead;
  stored.clear();
  const changed = await weights.become(second.plan, second.prepared);
  await live.renew(changed);
  const after = await lossesOf(live);
  const again = bytesRead - opening;
  live.close();
  weights.close();
  engine.close();

  const isSum = (weights.sums?.size ?? 0) > 0;
  const expected = await written(to);
  return { before, after, expected, difference: furthest(after, expected), changed, again, stored, isSum };
}

/** The losses of what a recipe writes. */
export async function written(one: Case) {
  const { plan, read, prepared } = await planned(one);
  const fresh = createCpuBackend();
  const weights = await openPlannedWeights(plan, [fresh], read, false, prepared);
  const runner = openRunner(fresh, architecture, weights, RESIDENT);
  const losses = await lossesOf(runner);
  runner.close();
  weights.close();
  fresh.close();
  return losses;
}

export const furthest = (some: Float64Array, others: Float64Array) =>
  Math.max(...some.map((loss, i) => Math.abs(loss - others[i]!)));
