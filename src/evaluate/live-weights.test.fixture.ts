/** Models whose recipe changes in use, of the samples made small. */
import { calibrateInNode } from '../../e2e/calibrate-in-node';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { planInNode } from '../../e2e/merge-in-node';
import type { Backend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { parseModelConfig } from '../formats/model-config';
import { headerLength, parseSafetensorsHeader } from '../formats/safetensors-header';
import { buildSafetensorsHeader } from '../formats/safetensors-write';
import { openRunner, type Runner } from '../forward/runner';
import { memoryFolder } from '../inputs/memory-models.test.support';
import { methods } from '../merge/methods';
import { resolveArchitecture } from '../models/resolution';
import { findFile, type ModelFolder } from '../sources/model-folder';
import { openLiveWeights } from './live-weights';
import { openPlannedWeights } from './planned-weights';
import { keptApart } from './running-model';

const folders = Object.fromEntries(
  await Promise.all(
    ['base', 'kitchen', 'harbour', 'workshop'].map(
      async (name) =>
        [name, await smallSample(name, `${SAMPLES}/${name}`, { layers: 2, narrower: 4 })] as const,
    ),
  ),
);
const bytesIn = async (folder: ModelFolder, path: string) => {
  const file = findFile(folder, path)!.open();
  return file.read(0, file.byteLength);
};
const textIn = async (folder: ModelFolder, path: string) =>
  new TextDecoder().decode(await bytesIn(folder, path));

/** A LoRA as a DoRA: the rows of what it changes have a length of their own. */
async function withLengths(path: string, lora: ModelFolder): Promise<ModelFolder> {
  const bytes = await bytesIn(lora, 'adapter_model.safetensors');
  const begin = 8 + headerLength(bytes.subarray(0, 8), bytes.length);
  const { tensors } = parseSafetensorsHeader(bytes.subarray(8, begin), bytes.length, path);
  const stored = [...tensors.values()].map((tensor) => ({
    ...{ name: tensor.name, dtype: tensor.dtype, shape: tensor.shape, byteLength: tensor.end - tensor.begin },
    bytes: bytes.subarray(tensor.begin, tensor.end),
  }));
  const lengths = stored.flatMap(({ name, shape }) => {
    const [module, factor] = name.split('.lora_');
    if (factor !== 'B.weight') return [];
    const values = new Uint8Array(new Float32Array(shape[0]!).fill(0.4).buffer);
    const own = { dtype: 'F32' as const, shape: [shape[0]!], byteLength: values.length, bytes: values };
    return [{ name: `${module}.lora_magnitude_vector`, ...own }];
  });
  const all = [...stored, ...lengths];
  const file = Buffer.concat([buildSafetensorsHeader(all, {}), ...all.map((one) => one.bytes)]);
  const config = JSON.parse(await textIn(lora, 'adapter_config.json')) as object;
  return memoryFolder(path, {
    'adapter_config.json': { ...config, use_dora: true },
    'adapter_model.safetensors': Uint8Array.from(file),
  });
}
folders.lengths = await withLengths('lengths', folders.kitchen!);
folders.attic = { ...folders.workshop!, path: 'attic' };
const config = parseModelConfig(await textIn(folders.base!, 'config.json'), 'config.json');
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

/** Behind each of the ids, [40, vocab]. */
async function logitsOf(runner: Runner): Promise<Float32Array> {
  return (await runner.pass({ sequences: [{ ids: IDS, from: 0 }], output: 'logits' })).logits[0]!;
}

/** Of the samples: two LoRAs and a whole contributor. */
export const MODELS = ['base+kitchen', 'base+harbour', 'workshop'];

/** A live model, and how it becomes another recipe's between two passes. */
export async function openLive(one: Case, engine: Backend, roomBytes: number) {
  const first = await planned(one);
  const read = { bytes: 0, stored: new Set<string>(), onRead: (_key: string) => {} };
  const readTensor: typeof first.read = (ref, begin, end) => {
    read.bytes += end - begin;
    read.stored.add(ref.key);
    read.onRead(ref.key);
    return first.read(ref, begin, end);
  };
  const apart = keptApart(first.plan, architecture, roomBytes);
  const weights = await openLiveWeights(first.plan, [engine], readTensor, apart, false, first.prepared);
  const runner = openRunner(engine, architecture, weights, RESIDENT);
  return {
    runner,
    read,
    isSum: () => (weights.sums?.size ?? 0) > 0,
    async turn(to: Case) {
      const { plan, prepared } = await planned(to);
      const changed = await weights.become(plan, prepared);
      await runner.renew(changed);
      return changed;
    },
    close() {
      runner.close();
      weights.close();
    },
  };
}

/** A live model at `from` that becomes `to` between two passes, beside a model opened at `to`. */
export async function turned(from: Case, to: Case, roomBytes = 0, open: () => Promise<Backend> = onCpu) {
  const engine = await open();
  const live = await openLive(from, engine, roomBytes);
  const { read } = live;
  const before = await logitsOf(live.runner);
  const opening = read.bytes;
  read.stored.clear();
  const changed = await live.turn(to);
  const after = await logitsOf(live.runner);
  const again = read.bytes - opening;
  const isSum = live.isSum();
  live.close();
  engine.close();

  const expected = await written(to);
  const difference = furthest(after, expected);
  return { before, after, expected, difference, changed, again, stored: read.stored, isSum };
}

/** The logits of what a recipe writes. */
export const written = (one: Case) => ofWritten(one, logitsOf);

/** What is measured of what a recipe writes. */
export async function ofWritten<T>(one: Case, measure: (runner: Runner) => Promise<T>): Promise<T> {
  const { plan, read, prepared } = await planned(one);
  const fresh = createCpuBackend();
  const weights = await openPlannedWeights(plan, [fresh], read, false, prepared);
  const runner = openRunner(fresh, architecture, weights, RESIDENT);
  const measured = await measure(runner);
  runner.close();
  weights.close();
  fresh.close();
  return measured;
}

export const furthest = (some: Float32Array, others: Float32Array) =>
  some.reduce((most, value, i) => Math.max(most, Math.abs(value - others[i]!)), 0);
