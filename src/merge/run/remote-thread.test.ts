/** Threads that share nothing write what one engine in this thread writes, whatever they can open by themselves. */
import { mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { diskFolder } from '../../../e2e/disk-folder';
import { goldenFolder } from '../../../e2e/goldens';
import { diffusers, kohya, loraFile } from '../../../e2e/image-loras';
import { treeHashOf } from '../../../e2e/tree-hash';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import type { Dtype } from '../../formats/dtype';
import { parseRecipe } from '../../formats/recipe-yaml';
import { buildSafetensorsHeader } from '../../formats/safetensors-write';
import { ggufEncoder } from '../../gguf/gguf-file';
import type { OpenModels } from '../../host/models';
import { diskSource, openFile } from '../../host/node/storage';
import { type Makers, serveThread } from '../../host/serve-thread';
import { startThreadsHere } from '../../host/threads.test.support';
import { openHashedInputs } from '../../host/weight-inputs';
import { scaledValues } from '../../inputs/kind-updates';
import { memoryFolder, openerOf } from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { giveBack, spareArray, takeSpares } from '../../sources/spare-arrays';
import { methodById } from '../methods';
import { finishGguf } from '../plan/finished-gguf';
import type { Plan } from '../plan/plan';
import { makePlan } from '../plan/recipe-plan';
import { finishShards } from '../plan/shards';
import { combinedValues } from '../tensor/combined-factors';
import type { Prepared } from '../tensor/prepared';
import { openMergeThreads } from './remote-thread';
import { type MergeThreads, runPlan } from './run';
import { openMerging } from './serve-thread';

const disk = {
  source: (origin: Parameters<typeof diskSource>[0] & { identity: string }) =>
    diskSource(origin, origin.identity),
  file: ({ location }: { location: string }) => openFile(location),
};
/** What threads make by themselves, and how often they did. */
const made = { scaled: 0, combined: 0 };
const makers: Makers = {
  scaled(...given) {
    made.scaled++;
    return scaledValues(...given);
  },
  combined(...given) {
    made.combined++;
    return combinedValues(...given);
  },
};
let out: string;
/** Tensors that a thread was told of at its beginning, not with the unit. */
let toldAtFirst = 0;
beforeAll(() => {
  out = mkdtempSync(join(tmpdir(), 'amalgam-threads-'));
  const merge = (...given: Parameters<typeof openMerging>) => {
    toldAtFirst = given[0].told.length;
    return openMerging(...given);
  };
  startThreadsHere(() => serveThread({ merge }, disk, makers));
});
afterAll(() => rmSync(out, { recursive: true }));

const mergekit = goldenFolder('mergekit');

/** A model of one file that other threads can open, or read through this one. */
function folderOf(name: string, config: string, location: string, isOnDisk: boolean): ModelFolder {
  const texts = { 'config.json': readFileSync(config, 'utf8') };
  const folder = memoryFolder(name, {
    ...texts,
    'model.safetensors': Uint8Array.from(readFileSync(location)),
  });
  if (!isOnDisk) return folder;
  const source = diskSource({ location, byteLength: statSync(location).size, name });
  return {
    ...folder,
    files: folder.files.map((file) =>
      file.path.endsWith('.safetensors') ? { ...file, open: () => source } : file,
    ),
  };
}

const folders = ['base', 'a', 'b', 'c'].map((name, i) =>
  folderOf(name, join(mergekit, 'config.json'), join(mergekit, `in_${name}.safetensors`), i !== 1),
);

async function merged(
  plan: Plan,
  from: readonly ModelFolder[],
  threads: number,
  prepared?: Prepared,
  places = true,
  size: { unitBytes: number; tileElements?: number } = { unitBytes: 20_000 },
) {
  const models = {
    file: (path: string, name: string) => {
      const folder = from.find((one) => one.path === path)!;
      return { folder, file: folder.files.find((file) => file.path === name)! };
    },
  } as unknown as OpenModels;
  const { signal } = new AbortController();
  const meter = { begin: () => {}, advance: () => {} };
  const inputs = await openHashedInputs(plan, models, signal, () => {}, meter);
  const shards = plan.shards.length > 0 ? finishShards(plan, new Map()) : [];
  const gguf = plan.gguf && finishGguf({ ...plan, gguf: plan.gguf }, shards, 'x', new Map());
  const told = new Map<string, number>();
  const { unitBytes, tileElements } = size;
  const common = {
    plan,
    ...(tileElements && { tileElements }),
    ...(prepared && { prepared }),
    onBytes: (bytes: number, tensor: string) => told.set(tensor, (told.get(tensor) ?? 0) + bytes),
  };
  const remote =
    threads === 0
      ? undefined
      : await openMergeThreads({
          ...common,
          inputs,
          count: threads,
          ...(plan.gguf && { gguf: { plan: plan.gguf } }),
        });
  let [written, units] = [0, 0];
  const run: MergeThreads['run'] = (task) => {
    units++;
    return remote!.run(task);
  };
  const files: Uint8Array[] = [];
  const trees: string[] = [];
  const sinkOf = (file: string) => {
    const location = join(out, `${threads}-${file}`);
    const begun = openSync(location, 'w');
    const handle = openFile(location);
    const underWay = new Set<number>();
    return {
      location,
      begun,
      underWay,
      ...(places && { place: { kind: 'disk' as const, location } }),
      async write(bytes: Uint8Array<ArrayBuffer>, at: number) {
        written++;
        underWay.add(at);
        // a disk that takes longer than the thread's answer
        await new Promise((resolve) => setTimeout(resolve, 5));
        handle.write(bytes, { at });
        underWay.delete(at);
      },
    };
  };
  const engines = [createCpuBackend()];
  const beside = gguf && shards.length > 0 ? sinkOf(gguf.file) : undefined;
  try {
    const { tensors } = await runPlan({
      ...common,
      shards: shards.length > 0 ? shards : [gguf!],
      engine: createCpuBackend(),
      ...(remote && { threads: { ...remote, run, unitBytes } }),
      methods: methodById,
      read: inputs.read,
      ...(gguf && {
        encoding: {
          encoder: (names, write) => ggufEncoder({ plan: plan.gguf!, names, engines, write }),
          ...(beside && { beside: { plan: gguf, open: async () => beside } }),
        },
      }),
      openShard: async (shard) => {
        const sink = sinkOf(shard.file);
        return {
          ...sink,
          async finishTensors(_, [part]) {
            expect([...sink.underWay].filter((at) => at < part!.end)).toEqual([]);
          },
          finish: async () =>
            void files.push(Uint8Array.from(readFileSync(sink.location)).slice(shard.header.length)),
          abort() {},
        };
      },
    });
    for (const [, hash] of await inputs.hashAll(meter)) trees.push(hash);
    if (beside) files.push(Uint8Array.from(readFileSync(beside.location)));
    return { tensors, files, trees, told, written, units };
  } finally {
    remote?.close();
    inputs.close();
  }
}

async function planOf(text: string, from: readonly ModelFolder[] = folders): Promise<Plan> {
  const { recipe, problems } = parseRecipe(text);
  expect(problems).toEqual([]);
  return makePlan(recipe!, openerOf(...from), methodById);
}

const textOf = (name: string) => readFileSync(join(mergekit, `${name}.yml`), 'utf8');

test.each([
  ['ties', textOf('ties')],
  ['dare_ties', textOf('dare_ties_seed7')],
  ['slerp', textOf('slerp')],
  ['a copy, layers of several models', textOf('passthrough_scale_stack')],
  [
    'one threshold and sign for whole models',
    `${textOf('ties')}\namalgam: { parameters: { semantics: paper } }\n`,
  ],
])('%s: bytes, reports, hashes of the inputs and progress are those of one engine', async (_, text) => {
  const plan = await planOf(text);
  const one = await merged(plan, folders, 0);
  // small neighbors are written at once
  expect(one.written).toBeLessThan(plan.tensors.length);
  for (const places of [true, false]) {
    const several = await merged(plan, folders, 3, undefined, places);
    expect(several.files.map(treeHashOf)).toEqual(one.files.map(treeHashOf));
    expect(several.tensors).toEqual(one.tensors);
    expect(several.trees).toEqual(one.trees);
    expect(new Map([...several.told].sort())).toEqual(new Map([...one.told].sort()));
    // each thread has the plans of its own units, but where one measures them all
    expect(toldAtFirst).toBe(text.includes('paper') ? plan.tensors.length : 0);
    // what threads can open comes through this one no more
    expect(several.written > 0).toBe(!places);
  }
});

const PAPER = 'base_model: base\namalgam: { parameters: { semantics: paper } }';

test.each([
  ['linear', '', true],
  ['task_arithmetic', 'base_model: base', true],
  ['dare_linear', PAPER, true],
  ['nearswap', 'base_model: base', true],
  ['ties', 'base_model: base', false],
])('%s: a large tensor is merged in parts where its method takes one pass', async (method, base, isCut) => {
  const samples = join(import.meta.dirname, '../../../public/samples/base');
  const file = readFileSync(join(samples, 'model.safetensors'));
  const begin = 8 + Number(file.readBigUInt64LE());
  const from = ['base', 'a', 'b'].map((name, seed) => {
    const changed = Uint8Array.from(file);
    for (let at = begin; at < changed.length; at += 2) changed[at]! ^= (at >> 3) & (31 * seed);
    const location = join(out, `large-${name}.safetensors`);
    writeFileSync(location, changed);
    return folderOf(name, join(samples, 'config.json'), location, name !== 'b');
  });
  const parameters = method === 'nearswap' ? 't: 0.001' : 'weight: 0.5, density: 0.5';
  const models = (method === 'nearswap' ? ['a'] : ['a', 'b']).map((name) => `{model: ${name}}`);
  const text = `merge_method: ${method}\n${base}\nmodels: [${models}]\nparameters: {${parameters}}\n`;
  const plan = await planOf(text, from);
  const tiles = { tileElements: 8192 };
  const one = await merged(plan, from, 0, undefined, true, { unitBytes: 0, ...tiles });
  const whole = await merged(plan, from, 3, undefined, true, { unitBytes: 2 ** 18, ...tiles });
  const parts = await merged(plan, from, 3, undefined, true, { unitBytes: 2 ** 14, ...tiles });
  for (const several of [whole, parts]) {
    expect(several.files.map(treeHashOf)).toEqual(one.files.map(treeHashOf));
    expect(several.tensors).toEqual(one.tensors);
    expect(several.trees).toEqual(one.trees);
    expect(new Map([...several.told].sort())).toEqual(new Map([...one.told].sort()));
  }
  // the pass that measures, and one unit for each tensor or part
  const most = plan.tensors.length + 1;
  expect(whole.units).toBeLessThan(most);
  if (isCut) expect(parts.units).toBeGreaterThan(most);
  else expect(parts.units).toBeLessThanOrEqual(most);
});

test('values that are computed here, of a quantized kind of adapter, reach the threads', async () => {
  const adapters = goldenFolder('adapters');
  const read = (path: string) => Uint8Array.from(readFileSync(join(adapters, path)));
  const base = readFileSync(join(adapters, 'bases/llama/config.json'), 'utf8');
  const from = [
    memoryFolder('base', { 'config.json': base, 'model.safetensors': read('bases/llama/model.safetensors') }),
    memoryFolder('adapter', {
      'adapter_config.json': readFileSync(join(adapters, 'loha/adapter_config.json'), 'utf8'),
      'adapter_model.safetensors': read('loha/adapter_model.safetensors'),
    }),
  ];
  const plan = await planOf(
    'merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: base+adapter, parameters: {weight: 1}}]\n',
    from,
  );
  const one = await merged(plan, from, 0);
  const several = await merged(plan, from, 2);
  expect(several.files.map(treeHashOf)).toEqual(one.files.map(treeHashOf));
  expect(several.tensors).toEqual(one.tensors);
});

test.each(['', ', combination: svd, rank: 3'])(
  'factors that LoRAs make as one are made by each thread%s',
  async (amalgam) => {
    const from = [loraFile('one', kohya), loraFile('two', diffusers)];
    const plan = await planOf(
      `merge_method: task_arithmetic\nmodels: [{model: one, parameters: {weight: 0.7}}, {model: two, parameters: {weight: 0.4}}]\namalgam: {output: adapter${amalgam}}\n`,
      from,
    );
    const one = await merged(plan, from, 0);
    Object.assign(made, { scaled: 0, combined: 0 });
    const several = await merged(plan, from, 2, undefined, true, { unitBytes: 0 });
    expect(several.files.map(treeHashOf)).toEqual(one.files.map(treeHashOf));
    expect(several.tensors).toEqual(one.tensors);
    // A and B of two modules; α is that of one of the two LoRAs
    expect(made.combined).toBe(4);
    expect(made.scaled).toBeGreaterThanOrEqual(2);
  },
);

test.each(['gguf: Q8_0', 'gguf: Q4_K_M, gguf_only: true'])('a GGUF file, %s', async (amalgam) => {
  const samples = join(import.meta.dirname, '../../../public/samples');
  const from = await Promise.all(['base', 'kitchen'].map((name) => diskFolder(name, join(samples, name))));
  const plan = await planOf(
    `merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: base+kitchen, parameters: {weight: 1}}]\namalgam: {${amalgam}}\n`,
    from,
  );
  const one = await merged(plan, from, 0);
  expect(one.files.length).toBe(amalgam.includes('only') ? 1 : 2);
  const several = await merged(plan, from, 3);
  expect(several.files.map(treeHashOf)).toEqual(one.files.map(treeHashOf));
});

test('memory that came with a merged unit goes to a thread with another one', async () => {
  const plan = await planOf(textOf('ties'));
  takeSpares();
  // threads of the test have the pool of this one: what crosses keeps its contents, and is another array there
  const came = spareArray(2 ** 24).fill(7);
  giveBack(came.buffer);
  await merged(plan, folders, 2);
  expect(came.byteLength).toBe(0);
  expect(spareArray(2 ** 24)[0]).toBe(7);
});

test('an error of a thread is the error of the run, and what another reader found of a file has to agree', async () => {
  const plan = await planOf(textOf('ties'));
  const file = Uint8Array.from(readFileSync(join(mergekit, 'in_a.safetensors')));
  file.fill(255, file.length - 4000);
  const damaged = folders.map((folder) =>
    folder.path === 'a'
      ? memoryFolder('a', {
          'config.json': readFileSync(join(mergekit, 'config.json'), 'utf8'),
          'model.safetensors': file,
        })
      : folder,
  );
  await expect(merged(plan, damaged, 2)).rejects.toMatchObject({
    code: 'NonFinite',
    message: expect.stringContaining('of a are NaN or infinite'),
    hint: expect.stringContaining('model’s files'),
  });
});

test('a quantized weight is opened by each thread, and merges as the values that it stands for', async () => {
  const shape = [48, 64];
  const [elements, config] = [48 * 64, join(out, 'quantized.json')];
  const write = (
    name: string,
    tensors: [name: string, dtype: Dtype, shape: number[], bytes: Uint8Array][],
  ) => {
    const parts = tensors.map(([key, dtype, of, bytes]) => ({
      name: key,
      dtype,
      shape: of,
      byteLength: bytes.length,
    }));
    const location = join(out, `${name}.safetensors`);
    const bytes = [buildSafetensorsHeader(parts, {}), ...tensors.map((tensor) => tensor[3])];
    writeFileSync(location, Buffer.concat(bytes));
    return folderOf(name, config, location, true);
  };
  writeFileSync(config, '{}');
  const codes = Uint8Array.from({ length: elements }, (_, i) => (i * 7 + (i >> 5)) % 16);
  const map = Float32Array.from({ length: 16 }, (_, i) => (i - 7) / 8);
  const absmax = Float32Array.from({ length: elements / 64 }, (_, i) => 1 + i / 3);
  const state = new TextEncoder().encode(JSON.stringify({ quant_type: 'nf4', blocksize: 64, shape }));
  const bytesOf = (values: Float32Array) => new Uint8Array(values.buffer);
  const pairs = Uint8Array.from({ length: elements / 2 }, (_, i) => 16 * codes[2 * i]! + codes[2 * i + 1]!);
  const quantized = write('quantized', [
    ['w.weight', 'U8', [elements / 2, 1], pairs],
    ['w.weight.absmax', 'F32', [elements / 64], bytesOf(absmax)],
    ['w.weight.quant_map', 'F32', [16], bytesOf(map)],
    ['w.weight.quant_state.bitsandbytes__nf4', 'U8', [state.length], state],
  ]);
  const values = Float32Array.from(codes, (code, i) => map[code]! * absmax[Math.floor(i / 64)]!);
  const plain = write('plain', [['w.weight', 'F32', shape, bytesOf(values)]]);
  const other = write('other', [['w.weight', 'F32', shape, bytesOf(values.map((x, i) => x + Math.sin(i)))]]);
  const bytes = async (name: string, threads: number) => {
    const from = [quantized, plain, other];
    const models = `models: [{model: other, parameters: {weight: 0.5, density: 0.4}}]`;
    const text = `merge_method: ties\nbase_model: ${name}\n${models}\ndtype: float32\n`;
    return (await merged(await planOf(text, from), from, threads)).files.map(treeHashOf);
  };
  const wanted = await bytes('plain', 0);
  expect([await bytes('quantized', 0), await bytes('quantized', 2)]).toEqual([wanted, wanted]);
});
