/**
 * Peak device memory while a model runs, by the engine's own allocations: the weights of two layers, one set of activations,
 * keys and values; where the model is a merge computed as it is read, also the memory of merging.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SAMPLES, smallSample } from '../../e2e/disk-folder';
import { type Backend, type BackendBuffer, countedBackend } from '../backend/backend';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { GREEDY, generate } from '../evaluate/generation';
import { evaluate } from '../evaluate/perplexity';
import { openPlannedWeights } from '../evaluate/planned-weights';
import { parseModelConfig } from '../formats/model-config';
import type { Recipe } from '../formats/recipe';
import { type FileTensor, readTensors } from '../forward/golden.test.fixture';
import { openRunner, type Runner } from '../forward/runner';
import { sourceOf } from '../forward/runner.test.cases';
import { openModels } from '../host/models';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { partOf } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import { splitLayer } from '../models/tensor-role';

const config = JSON.parse(readFileSync(join(SAMPLES, 'base/config.json'), 'utf8')) as object;
const tensors = readTensors(new Uint8Array(readFileSync(join(SAMPLES, 'base/model.safetensors'))));
const TILE_BYTES = 64 << 10;
/** As a model is measured; chunks of 32 rows and passes of as many, so that each goes through the weights several times. */
const options = { tileBytes: TILE_BYTES, activationBytes: 0, streamBytes: 0 };
const sequences = [100, 37].map((length) => ({
  ids: Array.from({ length }, (_, i) => (i * 37) % 1000),
  from: 1,
}));

const architectureOf = (layers: number) =>
  resolveArchitecture(
    parseModelConfig(JSON.stringify({ ...config, num_hidden_layers: layers }), 'config.json'),
  );
/** The base's first layers. */
const shallow = (layers: number): Map<string, FileTensor> =>
  new Map([...tensors].filter(([name]) => (splitLayer(name)?.index ?? 0) < layers));

/** Vectors of no layer, in f32, and those of the layers beside the matrices that a budget counts. */
const outerBytes = (stored: ReadonlyMap<string, FileTensor>) =>
  [...stored.values()].reduce((sum, { shape }) => sum + (shape.length === 1 ? shape[0]! * 4 : 0), 0);

type Kind = 'weights' | 'keys and values' | 'activations' | 'merging';

/** An engine that records the most bytes there ever were of each kind, and layers there at once. */
function bookkept(inner: Backend) {
  const counted = countedBackend(inner);
  const now = new Map<Kind, number>();
  const most = new Map<Kind, number>();
  const layers = new Map<number, number>();
  let together = 0;
  /** While a tensor is merged, what is allocated belongs to merging. */
  let merging = 0;
  const kinds = new Map<BackendBuffer, Kind>();
  const kindOf = (label: string): Kind => {
    if (merging > 0) return 'merging';
    if (/^(keys|values) of layer/.test(label)) return 'keys and values';
    return tensors.has(label.split(',')[0]!) ? 'weights' : 'activations';
  };
  const book = (kind: Kind, label: string, bytes: number) => {
    now.set(kind, (now.get(kind) ?? 0) + bytes);
    most.set(kind, Math.max(most.get(kind) ?? 0, now.get(kind)!));
    const layer = kind === 'weights' ? splitLayer(label)?.index : undefined;
    if (layer === undefined) return;
    const left = (layers.get(layer) ?? 0) + bytes;
    if (left === 0) layers.delete(layer);
    else layers.set(layer, left);
    together = Math.max(together, layers.size);
  };
  const engine: Backend = Object.create(counted, {
    allocate: {
      value: (byteLength: number, label: string) => {
        const buffer = counted.allocate(byteLength, label);
        kinds.set(buffer, kindOf(label));
        book(kindOf(label), label, buffer.byteLength);
        return buffer;
      },
    },
    free: {
      value: (buffer: BackendBuffer) => {
        counted.free(buffer);
        book(kinds.get(buffer)!, buffer.label, -buffer.byteLength);
      },
    },
  });
  return {
    engine,
    counted,
    most: (kind: Kind) => most.get(kind) ?? 0,
    together: () => together,
    async whileMerging<T>(work: () => Promise<T>): Promise<T> {
      merging++;
      try {
        return await work();
      } finally {
        merging--;
      }
    },
  };
}

/** The two layers in a row that take most: matrices as stored, vectors in f32, the head in tiles. */
function twoLayers(layers: number): number {
  const sizes = Array.from({ length: layers }, () => 0);
  let outer = 0;
  for (const [name, { shape, bytes, dtype }] of tensors) {
    const layer = splitLayer(name)?.index;
    const size = shape.length === 1 ? shape[0]! * 4 : bytes.length;
    expect(dtype).toBe('BF16');
    if (layer !== undefined && layer < layers) sizes[layer]! += size;
    else if (shape.length === 1) outer += size;
  }
  const parts = [...sizes, TILE_BYTES, TILE_BYTES];
  return outer + Math.max(...parts.slice(1).map((size, i) => size + parts[i]!));
}

async function run(runner: Runner): Promise<void> {
  await evaluate(runner, { ids: sequences[0]!.ids, bos: null }, { window: 40, stride: 20 });
  await runner.pass({ sequences, output: 'loss' });
  await generate(runner, [sequences[1]!.ids], { maxTokens: 4, sampling: GREEDY });
}

test('a stored model: two layers, activations that do not grow with its depth, keys and values', async () => {
  const activations: number[] = [];
  for (const depth of [2, 4]) {
    const books = bookkept(createCpuBackend());
    const architecture = architectureOf(depth);
    const runner = openRunner(books.engine, architecture, sourceOf(shallow(depth)), options);
    await run(runner);
    expect(books.together()).toBe(2);
    expect(books.most('weights')).toBeLessThanOrEqual(twoLayers(depth));
    // 37 tokens and 3 of the 4 written are cached, in f32, once as keys and once as values
    const { keyValueHeads, headDim } = partOf(architecture.blocks[0]!, 'attention')!;
    expect(books.most('keys and values')).toBe(2 * depth * 40 * keyValueHeads * headDim * 4);
    expect(books.counted.peakBytes).toBe(runner.peakBytes);
    expect(runner.peakBytes).toBeLessThanOrEqual(
      books.most('weights') + books.most('activations') + books.most('keys and values'),
    );
    activations.push(books.most('activations'));
    runner.close();
    expect(books.counted.bytes).toBe(0);
  }
  // a count of what is not finite for each layer, and nothing else; filled up to 16 bytes
  expect(activations[1]! - activations[0]!).toBeLessThanOrEqual(16);
});

test('a model that writes: layers stay as far as they fit into what is allowed, two of the others come and go', async () => {
  const depth = 6;
  const stored = shallow(depth);
  const two = twoLayers(depth);
  const whole = openRunner(createCpuBackend(), architectureOf(depth), sourceOf(stored), options).weightBytes;
  for (const residentBytes of [two, Math.floor((two + whole) / 2), whole]) {
    const books = bookkept(createCpuBackend());
    const limits = { ...options, residentBytes };
    const runner = openRunner(books.engine, architectureOf(depth), sourceOf(stored), limits);
    await generate(runner, [sequences[1]!.ids], { maxTokens: 3, sampling: GREEDY });
    expect(runner.residentBytes).toBeLessThanOrEqual(residentBytes);
    expect(books.most('weights')).toBeLessThanOrEqual(Math.max(two, residentBytes + outerBytes(stored)));
    expect(books.counted.peakBytes).toBe(runner.peakBytes);
    runner.close();
    // layers that stay are let go of one by one
    await new Promise((resolve) => setTimeout(resolve));
    expect(books.counted.bytes).toBe(0);
  }
});

test('a merge computed as it is read: one layer beside what merging takes, and nothing of it stays', async () => {
  const depth = 3;
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const name of ['base', 'kitchen', 'workshop'])
    await models.add(await smallSample(`samples/${name}`, join(SAMPLES, name), { layers: depth }));
  const recipe: Recipe = {
    mergeMethod: 'ties',
    baseModel: 'samples/base',
    models: ['samples/base+samples/kitchen', 'samples/workshop'].map((model) => ({
      model,
      parameters: { weight: 0.5, density: 0.3 },
    })),
    parameters: {},
    amalgam: {},
  };
  const plan = await makePlan(recipe, (ref) => models.open(ref), methodById);
  const books = bookkept(createCpuBackend());
  const read = (ref: { folder: string; file: string; begin: number }, begin: number, end: number) =>
    models
      .file(ref.folder, ref.file)
      .file.open()
      .read(ref.begin + begin, ref.begin + end);
  const weights = await books.whileMerging(() => openPlannedWeights(plan, [books.engine], read, false));
  const source = {
    ...weights,
    read: (name: string, begin: number, end: number) =>
      books.whileMerging(() => weights.read(name, begin, end)),
  };
  const stored = bookkept(createCpuBackend());
  const plain = openRunner(stored.engine, architectureOf(depth), sourceOf(shallow(depth)), options);
  await run(plain);
  const runner = openRunner(books.engine, architectureOf(depth), source, options);
  await run(runner);
  expect(books.together()).toBe(1);
  expect(books.most('weights')).toBeLessThanOrEqual(twoLayers(depth));
  expect(books.most('activations')).toBe(stored.most('activations'));
  expect(books.most('keys and values')).toBe(stored.most('keys and values'));
  expect(books.most('merging')).toBeGreaterThan(0);
  expect(books.counted.peakBytes).toBeLessThanOrEqual(
    twoLayers(depth) + books.most('activations') + books.most('keys and values') + books.most('merging'),
  );
  weights.rest();
  runner.close();
  weights.close();
  expect(books.counted.bytes).toBe(0);
});
