/** One LoRA looked at and written in another shape, against whole matrices. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { products } from '../../../e2e/adapter-output-cases';
import { diskFolder, smallSample } from '../../../e2e/disk-folder';
import { goldenFolder } from '../../../e2e/goldens';
import { diffusers, kohya, loraFile, product } from '../../../e2e/image-loras';
import { largestDifference, mergeInNode, readTensors } from '../../../e2e/merge-in-node';
import { openModels } from '../../host/models';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { singularValues } from '../../linalg/small-svd';
import { fileSource } from '../../sources/file-source';
import type { ModelFolder } from '../../sources/model-folder';
import { fakeStorage } from '../../store/opfs.test.fake';
import { listOutputs, openOutputFile } from '../../write/finished-outputs';
import { random, weightFile } from '../difference/compare.test.support';
import { jobs } from './job';
import type { ReshapeLoraRequest } from './report';

const sample = (name: string) =>
  smallSample(name, fileURLToPath(new URL(`../../../public/samples/${name}`, import.meta.url)), {
    ...{ layers: 2, narrower: 4 },
  });
const signal = new AbortController().signal;

async function opened(more: Record<string, ModelFolder> = {}) {
  const folders: Record<string, ModelFolder> = { ...more };
  for (const name of ['base', 'kitchen']) folders[name] = await sample(name);
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const [name, folder] of Object.entries(folders)) await models.add(folder, name);
  return { models, folders };
}

async function written(name: string): Promise<ModelFolder> {
  const { files } = (await listOutputs()).find((output) => output.name === name)!;
  const all = await Promise.all(
    files.map(async ({ path, bytes }) => {
      const file = await openOutputFile(name, path);
      return { path, byteLength: bytes, open: () => fileSource(file, path) };
    }),
  );
  return { path: name, origin: { kind: 'local' }, files: all };
}

async function bytesOf(folder: ModelFolder, path: string) {
  const file = folder.files.find((one) => one.path === path)!;
  return new Uint8Array(await file.open().read(0, file.byteLength));
}

let runs = 0;

async function reshaped(change: Partial<ReshapeLoraRequest>, more: Record<string, ModelFolder> = {}) {
  const name = `made ${++runs}`;
  const { models, folders } = await opened(more);
  const report = await jobs.reshapeLora(
    {
      ...{ lora: 'base+kitchen', engine: 'cpu', destination: { kind: 'downloads', name } },
      ...{ rank: null, maxRank: 128, include: [], exclude: [], scale: 1, format: 'peft', dtype: 'F32' },
      ...change,
    },
    models,
    signal,
    () => {},
  );
  return { report, folder: await written(name), folders };
}

const onBase = (lora: ModelFolder, folders: Record<string, ModelFolder>, weight = 1) =>
  mergeInNode(
    `merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: base+lora, parameters: {weight: ${weight}}}]\ndtype: float32\n`,
    '',
    { ...folders, lora },
  );

/** B·A of every module of a PEFT folder. */
async function changes(folder: ModelFolder) {
  const config = JSON.parse(new TextDecoder().decode(await bytesOf(folder, 'adapter_config.json')));
  return products(readTensors(await bytesOf(folder, 'adapter_model.safetensors'), folder.path), config);
}

const spectrum = (delta: Float64Array, outputs: number) =>
  singularValues({ rows: delta.length / outputs, cols: outputs, data: delta.slice() });

beforeEach(() => vi.stubGlobal('navigator', fakeStorage().navigator));

describe('what a LoRA is made of', () => {
  it('is known from its factors as from the product', async () => {
    const { models, folders } = await opened();
    const report = await jobs.measureLora({ lora: 'kitchen', engine: 'cpu' }, models, signal, () => {});
    const whole = await changes(folders.kitchen!);
    expect(report.modules.map(({ module }) => module).sort()).toEqual([...whole.keys()].sort());
    for (const { module, shape, rank, values, squares } of report.modules) {
      const delta = whole.get(module)!;
      const wanted = spectrum(delta, shape[0]!);
      expect(rank).toBe(8);
      for (let i = 0; i < 8; i++) expect(values[i]! / wanted[i]!, module).toBeCloseTo(1, 5);
      expect(squares / delta.reduce((sum, v) => sum + v * v, 0)).toBeCloseTo(1, 5);
    }
    expect(report.facts).toContainEqual({ label: 'Kind', value: 'LoRA, r 8, α 16' });
  });

  it('of two models is the same, where one is the other with it', async () => {
    const { models } = await opened();
    const request = { base: 'base', finetuned: 'base+kitchen', engine: 'cpu' } as const;
    const pair = await jobs.measureLora(request, models, signal, () => {});
    const lora = await jobs.measureLora({ lora: 'kitchen', engine: 'cpu' }, models, signal, () => {});
    for (const { module, values } of lora.modules) {
      const other = pair.modules.find((one) => one.module === module)!;
      expect(other.rank).toBeNull();
      for (const [i, s] of values.entries()) expect(other.values[i]! / s, module).toBeCloseTo(1, 3);
    }
  });
});

describe('one LoRA written again', () => {
  it.each([1, 0.5, -2])('as it is, times %d', async (scale) => {
    const { report, folder, folders } = await reshaped({ scale });
    expect(report.merged.error).toBe(0);
    const wanted = await onBase(folders.kitchen!, folders, scale);
    const { tensors } = await onBase(folder, folders);
    for (const [name, { values }] of wanted.tensors)
      expect(largestDifference(tensors.get(name)!.values, values).relative, name).toBeLessThan(1e-6);
  });

  it.each([3, -3])('at rank 3 it is the best there is, scaled by %d', async (scale) => {
    const { report, folder, folders } = await reshaped({ rank: { kind: 'rank', rank: 3 }, scale });
    const [before, after] = [await changes(folders.kitchen!), await changes(folder)];
    for (const { module, rank, shape, error } of report.modules) {
      expect(rank).toBe(3);
      const whole = before.get(module)!.map((v) => v * scale);
      const rest = after.get(module)!.map((v, e) => v - whole[e]!);
      const all = spectrum(whole, shape[0]!);
      const squares = (values: Float64Array) => values.reduce((sum, v) => sum + v * v, 0);
      const best = Math.sqrt(squares(all.slice(3)) / squares(all));
      expect(Math.sqrt(squares(rest) / squares(whole)) / best, module).toBeCloseTo(1, 4);
      expect(error! / best, module).toBeCloseTo(1, 4);
    }
  });

  it('keeps the share of energy that is asked for, and no rank more', async () => {
    const { report } = await reshaped({ rank: { kind: 'energy', share: 0.9 } });
    for (const { error, rank, singularValues: values, normDelta } of report.modules) {
      expect(error! ** 2).toBeLessThanOrEqual(0.1 + 1e-6);
      const less = values.slice(0, rank - 1).reduce((sum, s) => sum + s * s, 0);
      expect(less).toBeLessThan(0.9 * normDelta ** 2);
    }
  });

  it('in so many bytes, of the modules that are asked for', async () => {
    const budget = { kind: 'bytes', bytes: 4000 } as const;
    const { report } = await reshaped({ rank: budget, include: ['mlp'], exclude: ['gate'] });
    expect(report.modules.length + report.left.length).toBe(4);
    expect([...report.modules.map((m) => m.module)].every((name) => /mlp\.(up|down)_proj$/.test(name))).toBe(
      true,
    );
    expect(report.parameters * 4).toBeLessThanOrEqual(4000);
    await expect(reshaped({ include: ['nothing'] })).rejects.toThrow(/None of the 14 modules/);
  });

  it('for MLX and back it is the same', async () => {
    const mlx = await reshaped({ format: 'mlx', rank: { kind: 'energy', share: 0.9 } });
    expect(mlx.folder.files.map(({ path }) => path)).toContain('adapters.safetensors');
    const back = await reshaped({ lora: 'mlx' }, { mlx: { ...mlx.folder, path: 'mlx' } });
    const peft = await reshaped({ rank: { kind: 'energy', share: 0.9 } });
    const [ours, theirs] = [await changes(back.folder), await changes(peft.folder)];
    for (const [module, delta] of theirs)
      expect(
        largestDifference(Float32Array.from(ours.get(module)!), Float32Array.from(delta)).relative,
      ).toBeLessThan(1e-6);
  });

  it('an adapter of mlx_lm becomes one of PEFT that changes the base alike', async () => {
    const root = goldenFolder('adapters');
    const folders = {
      base: await diskFolder('base', join(root, 'bases/llama')),
      lora: await diskFolder('lora', join(root, 'v-mlx')),
    };
    const models = openModels(() => ({ url: 'https://hub.invalid' }));
    for (const [name, folder] of Object.entries(folders)) await models.add(folder, name);
    await jobs.reshapeLora(
      {
        ...{ lora: 'base+lora', engine: 'cpu', destination: { kind: 'downloads', name: 'made' }, rank: null },
        ...{ maxRank: 128, include: [], exclude: [], scale: 1, format: 'peft', dtype: 'F32' },
      },
      models,
      signal,
      () => {},
    );
    const wanted = await onBase(folders.lora, folders);
    const { tensors } = await onBase(await written('made'), folders);
    for (const [name, { values }] of wanted.tensors)
      expect(largestDifference(tensors.get(name)!.values, values).relative, name).toBeLessThan(1e-6);
  });

  it('for llama.cpp it is the file that a merge of it alone gives', async () => {
    const { folder } = await reshaped({ format: 'gguf', dtype: 'F16' });
    const file = folder.files.find(({ path }) => path.endsWith('.gguf'))!;
    expect(new TextDecoder().decode((await bytesOf(folder, file.path)).slice(0, 4))).toBe('GGUF');
    await expect(reshaped({ lora: 'kitchen', format: 'gguf' })).rejects.toThrow(/no base is named/);
  });

  it('a module that changes nothing is left out where ranks are chosen', async () => {
    const { folders } = await opened();
    const idle = 'base_model.model.model.layers.0.mlp.up_proj.lora_B.weight';
    const weights = readTensors(await bytesOf(folders.kitchen!, 'adapter_model.safetensors'), 'kitchen');
    const all = Object.fromEntries(
      [...weights].map(([name, { shape, values }]) => [
        name,
        { shape, values: Float32Array.from(values, (v) => (name === idle ? 0 : v)) },
      ]),
    );
    const config = new TextDecoder().decode(await bytesOf(folders.kitchen!, 'adapter_config.json'));
    const lora = memoryFolder('idle', {
      'adapter_config.json': config,
      'adapter_model.safetensors': weightFile(all),
    });
    const { report } = await reshaped({ lora: 'idle', rank: { kind: 'energy', share: 0.9 } }, { idle: lora });
    expect(report.left).toEqual([
      { name: 'model.layers.0.mlp.up_proj', normDelta: 0, why: 'it changes nothing' },
    ]);
    expect(report.modules).toHaveLength(13);
    const alone = { lora: 'idle', include: ['layers.0.mlp.up'], rank: { kind: 'rank', rank: 2 } } as const;
    await expect(reshaped({ ...alone, include: [...alone.include] }, { idle: lora })).rejects.toThrow(
      /changes nothing/,
    );
  });

  it('what it carries whole goes along, and where that cannot be it says how to leave it out', async () => {
    const norm = random([32], 1, 5);
    const { folders } = await opened();
    const weights = readTensors(await bytesOf(folders.kitchen!, 'adapter_model.safetensors'), 'kitchen');
    const all = Object.fromEntries(
      [...weights].map(([name, { shape, values }]) => [name, { shape, values: Float32Array.from(values) }]),
    );
    const config = JSON.parse(
      new TextDecoder().decode(await bytesOf(folders.kitchen!, 'adapter_config.json')),
    );
    const whole = memoryFolder('whole', {
      'adapter_config.json': { ...config, modules_to_save: ['model.norm'] },
      'adapter_model.safetensors': weightFile({ ...all, 'base_model.model.model.norm.weight': norm }),
    });
    const { report, folder } = await reshaped({ lora: 'base+whole', scale: 2 }, { whole });
    expect(report.saved.map(({ name }) => name)).toEqual(['model.norm.weight']);
    const { tensors } = await onBase(folder, folders);
    expect(largestDifference(tensors.get('model.norm.weight')!.values, norm.values).relative).toBeLessThan(
      1e-6,
    );
    const mlx = { lora: 'base+whole', format: 'mlx' } as const;
    await expect(reshaped(mlx, { whole })).rejects.toThrow(/takes factors alone.*model\.norm\.weight/);
    expect((await reshaped({ ...mlx, exclude: ['norm'] }, { whole })).report.modules).toHaveLength(14);
  });

  it('what has no plain factors is refused by name, and a whole model too', async () => {
    const dora = await diskFolder('dora', join(goldenFolder('adapters'), 'embed-dora'));
    await expect(reshaped({ lora: 'dora' }, { dora })).rejects.toThrow(/uses DoRA/);
    await expect(reshaped({ lora: 'base' })).rejects.toThrow(/whole model/);
  });
});

describe('a LoRA of an image model', () => {
  const more = { sd: loraFile('sd', kohya) };

  it('goes from kohya to ComfyUI, to diffusers and back, and stays the same factors', async () => {
    const comfyui = await reshaped({ lora: 'sd', format: 'comfyui' }, more);
    const first = readTensors(await bytesOf(comfyui.folder, 'lora.safetensors'), 'comfyui');
    expect([...first.keys()].sort()[0]).toBe('diffusion_model.input_blocks.4.0.in_layers.2.lora_A.weight');
    const named = await reshaped({ lora: 'it', format: 'diffusers' }, { it: comfyui.folder });
    const second = readTensors(await bytesOf(named.folder, 'lora.safetensors'), 'diffusers');
    expect([...second.keys()].sort()).toEqual(Object.keys(diffusers).sort());
    const back = await reshaped({ lora: 'it', format: 'kohya' }, { it: named.folder });
    const last = readTensors(await bytesOf(back.folder, 'lora.safetensors'), 'kohya');
    for (const [key, { values, shape }] of second) {
      const module = key.replace(/\.lora_[AB]\.weight$/, '').replaceAll('.', '_');
      const kept = last.get(`lora_${module}.lora_${key.includes('_A.') ? 'down' : 'up'}.weight`)!;
      expect(kept.shape).toEqual(shape);
      expect(kept.values).toEqual(values);
    }
  });

  it('is looked at as it is stored', async () => {
    const half = { sd: loraFile('sd', kohya, 'F16') };
    const { models } = await opened(half);
    const { facts, modules } = await jobs.measureLora(
      { lora: 'sd', engine: 'cpu' },
      models,
      signal,
      () => {},
    );
    expect(Object.fromEntries(facts.map(({ label, value }) => [label, value]))).toEqual({
      Kind: 'LoRA of an image model, r 4',
      'Stored as': 'F16',
      'Names of': 'kohya',
    });
    expect(modules.map(({ scale }) => scale)).toEqual([null, null]);
  });

  it('of another rank keeps its kernels, and the change where the rank is all of it', async () => {
    const { folder } = await reshaped({ lora: 'sd', rank: { kind: 'rank', rank: 4 } }, more);
    const tensors = readTensors(await bytesOf(folder, 'lora.safetensors'), 'made');
    for (const [name, alpha] of [
      ['lora_unet_input_blocks_4_1_proj_in', 2],
      ['lora_unet_input_blocks_4_0_in_layers_2', 1],
    ] as const) {
      const [down, up] = ['lora_down', 'lora_up'].map((part) => `${name}.${part}.weight`) as [string, string];
      const [a, b] = [tensors.get(down)!, tensors.get(up)!];
      expect([a.shape, b.shape]).toEqual([kohya[down]!.shape, kohya[up]!.shape]);
      const wanted = product(kohya[down]!, kohya[up]!, alpha / 4);
      const found = largestDifference(Float32Array.from(product(a, b, 1)), Float32Array.from(wanted));
      expect(found.relative).toBeLessThan(1e-5);
    }
  });

  it.each([
    ['sd', 'mlx'],
    ['base+kitchen', 'kohya'],
  ] as const)('%s is not written for %s', async (lora, format) => {
    await expect(reshaped({ lora, format }, more)).rejects.toMatchObject({ code: 'Usage' });
  });
});
