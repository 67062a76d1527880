/** The Gram merge of LoRAs as a LoRA: of their changes, and of how the models use them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { gramOracle, solveOracle } from '../src/calibration/oracle.test.support';
import type { Dtype } from '../src/formats/dtype';
import { buildSafetensorsHeader, sortForFile } from '../src/formats/safetensors-write';
import { singularValues } from '../src/linalg/small-svd';
import { findFile, type ModelFolder } from '../src/sources/model-folder';
import { fakeStorage } from '../src/store/opfs.test.fake';
import { products, written } from './adapter-output-cases';
import { calibrateInNode } from './calibrate-in-node';
import { diskFolder } from './disk-folder';
import { goldenFolder } from './goldens';
import { largestDifference, mergeInNode, planInNode, readTensors } from './merge-in-node';

const root = join(goldenFolder('adapters'), 'add_weighted_adapter');
const base = join(root, '../bases/llama');
const folders = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, join(root, 'inputs', name)]));

describe('a Gram merge of changes', () => {
  const yaml = (output: 'adapter' | 'model', more = '') =>
    `merge_method: gram\nbase_model: base\nmodels: [{model: base+a}, {model: base+b}, {model: base+c}]\nparameters: {match: changes, lambda: 1.3}\n${
      output === 'adapter' ? `amalgam: {output: adapter${more}}\n` : ''
    }`;

  it('is the minimum over whole matrices, without one: τ = ΣτᵢGᵢ(ΣGᵢ)⁻¹, Gᵢ = τᵢᵀτᵢ/‖τᵢ‖² + I/d', async () => {
    const { tensors } = await mergeInNode(yaml('adapter'), root, folders);
    const made = products(tensors, { lora_alpha: 1, use_rslora: true, alpha_pattern: {} });
    const inputs = ['a', 'b', 'c'].map((name) => {
      const read = (file: string) => readFileSync(join(folders[name]!, file));
      const bytes = new Uint8Array(read('adapter_model.safetensors'));
      return products(readTensors(bytes, name), JSON.parse(read('adapter_config.json').toString()));
    });
    expect(made.size).toBe(3);
    for (const [module, ours] of made) {
      const d = tensors.get(`base_model.model.${module}.lora_A.weight`)!.shape[1]!;
      const rank = tensors.get(`base_model.model.${module}.lora_A.weight`)!.shape[0]!;
      expect(rank).toBe(20);
      const scale = Math.sqrt(rank);
      const wanted = ours.map(() => 0);
      const total = new Float64Array(d * d);
      const taus = inputs.map((of) => of.get(module)!);
      const grams = taus.map((tau) => {
        const square = tau.reduce((sum, v) => sum + v * v, 0);
        const gram = gramOracle(Float32Array.from(tau), tau.length / d, d).map((v) => v / square);
        for (let j = 0; j < d; j++) gram[j * (d + 1)]! += 1 / d;
        for (const [e, v] of gram.entries()) total[e]! += v;
        return gram;
      });
      for (let row = 0; row < ours.length / d; row++) {
        const right = new Float64Array(d);
        for (const [i, gram] of grams.entries()) {
          for (let j = 0; j < d; j++) {
            for (let k = 0; k < d; k++) right[j]! += taus[i]![row * d + k]! * gram[k * d + j]!;
          }
        }
        wanted.set(solveOracle(total, right, d), row * d);
      }
      const largest = wanted.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
      const apart = ours.reduce((most, v, e) => Math.max(most, Math.abs(v * scale - 1.3 * wanted[e]!)), 0);
      expect(apart / largest, module).toBeLessThan(2e-6);
    }
  });

  it.each(['', ', parameters: {weight: 2.5}'])(
    'gives, on top of the base, the Gram merge of the models%s',
    async (own) => {
      vi.stubGlobal('navigator', fakeStorage().navigator);
      const text = (output: 'adapter' | 'model') => yaml(output).replace('base+a', `base+a${own}`);
      const model = await calibrateInNode(text('model'), { root, folders: { ...folders, base } });
      const { adapterFolder } = await written(root, text('adapter'), folders);
      const alone = 'merge_method: passthrough\nmodels:\n  - model: base+merged\n';
      const { tensors } = await mergeInNode(alone, root, { base, merged: adapterFolder });
      vi.unstubAllGlobals();
      for (const [name, { values }] of tensors) {
        expect(largestDifference(values, await model.tensor(name)).relative, name).toBeLessThan(1e-5);
      }
    },
  );

  it('is cut to a rank by its leading singular values', async () => {
    const { tensors } = await mergeInNode(yaml('adapter', ', combination: gram_svd, rank: 3'), root, folders);
    const whole = await mergeInNode(yaml('adapter'), root, folders);
    const of = (t: typeof tensors) => products(t, { lora_alpha: 1, use_rslora: true, alpha_pattern: {} });
    const [cut, all] = [of(tensors), of(whole.tensors)];
    for (const [module, few] of cut) {
      const d = tensors.get(`base_model.model.${module}.lora_A.weight`)!.shape[1]!;
      const columns = (values: Float64Array, by: number) => ({
        rows: d,
        cols: values.length / d,
        data: values.map((v) => v * by),
      });
      const most = singularValues(columns(all.get(module)!, Math.sqrt(20)));
      const kept = singularValues(columns(few, Math.sqrt(3)));
      for (let i = 0; i < 3; i++) expect(kept[i]! / most[i]!, module).toBeCloseTo(1, 5);
    }
  });
});

describe('a Gram merge of inputs', () => {
  const yaml = (output: 'adapter' | 'model', more = '') =>
    `merge_method: gram\nbase_model: base\nmodels: [{model: base+a, parameters: {calibration: one, weight: 2}}, {model: base+b, parameters: {calibration: two}}, {model: base+c, parameters: {calibration: three}}]\nparameters: {lambda: 1.3, calibration_windows: 4, calibration_window: 16}\n${
      output === 'adapter' ? `amalgam: {output: adapter${more}}\n` : ''
    }`;
  const ids = (seed: number) => Array.from({ length: 80 }, (_, i) => (i * i * seed + 7 * i + seed) % 64);
  const texts = { one: ids(3), two: ids(5), three: ids(11) };
  const calibrated = (text: string) => calibrateInNode(text, { root, folders: { ...folders, base }, texts });

  it.each(['', ', embedding: average', ', gram: diagonal'])(
    'leaves every B as it is, and is, on top of the base, the Gram merge of the models%s',
    async (more) => {
      vi.stubGlobal('navigator', fakeStorage().navigator);
      const with_ = (output: 'adapter' | 'model') =>
        yaml(output).replace('lambda: 1.3', `lambda: 1.3${more}`);
      const model = await calibrated(with_('model'));
      const { prepared } = await calibrated(with_('adapter'));
      const { adapterFolder, tensors: made } = await written(
        ...([root, with_('adapter'), { ...folders, base }, prepared] as const),
      );
      const alone = 'merge_method: passthrough\nmodels:\n  - model: base+merged\n';
      const { tensors } = await mergeInNode(alone, root, { base, merged: adapterFolder });
      let changed = 0;
      for (const [name, { values }] of tensors) {
        const wanted = await model.tensor(name);
        changed += largestDifference((await untouched()).get(name)!.values, wanted).relative > 1e-2 ? 1 : 0;
        expect(largestDifference(values, wanted).relative, name).toBeLessThan(1e-5);
      }
      vi.unstubAllGlobals();
      expect(changed).toBeGreaterThan(2);
      for (const [name, { shape, values }] of made) {
        if (!name.endsWith('lora_B.weight')) continue;
        const [outputs, rank] = shape as [number, number];
        let first = 0;
        for (const own of ['a', 'b', 'c']) {
          const b = inputOf(own).get(name);
          if (!b) continue;
          for (let o = 0; o < outputs; o++) {
            const row = values.slice(o * rank + first, o * rank + first + b.shape[1]!);
            expect([...row], name).toEqual([...b.values.slice(o * b.shape[1]!, (o + 1) * b.shape[1]!)]);
          }
          first += b.shape[1]!;
        }
        expect(first, name).toBe(rank);
      }
    },
  );

  it('counts a row of the embedding by how often a model used its token', async () => {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const own = {
      base,
      one: await onEmbedding('tied-embed-ensure'),
      two: await onEmbedding('tied-embed-head'),
    };
    const named = (name: string) => `{model: base+${name}, parameters: {calibration: ${name}}}`;
    const text = (more: string) =>
      yaml('model')
        .replace(/models: .*/, `models: [${named('one')}, ${named('two')}]`)
        .concat(more);
    const calibrate = (more: string) => calibrateInNode(text(more), { root, folders: own, texts });
    const model = await calibrate('');
    const { prepared } = await calibrate('amalgam: {output: adapter}\n');
    const { adapterFolder } = await written(root, text('amalgam: {output: adapter}\n'), own, prepared);
    const alone = 'merge_method: passthrough\nmodels:\n  - model: base+merged\n';
    const { tensors } = await mergeInNode(alone, root, { ...own, merged: adapterFolder });
    const table = 'model.embed_tokens.weight';
    const average = await calibrateInNode(text('').replace('lambda', 'embedding: average, lambda'), {
      ...{ root, folders: own, texts },
    });
    expect(
      largestDifference(await average.tensor(table), await model.tensor(table)).relative,
    ).toBeGreaterThan(1e-2);
    for (const [name, { values }] of tensors)
      expect(largestDifference(values, await model.tensor(name)).relative, name).toBeLessThan(1e-5);
    vi.unstubAllGlobals();
  });

  it('is cut to a rank by its leading singular values', async () => {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const cut = yaml('adapter', ', combination: gram_svd, rank: 3');
    const { prepared } = await calibrated(cut);
    const few = await mergeInNode(cut, root, { ...folders, base }, undefined, prepared);
    const all = await mergeInNode(yaml('adapter'), root, { ...folders, base }, undefined, prepared);
    vi.unstubAllGlobals();
    const of = (t: typeof few.tensors) => products(t, { lora_alpha: 1, use_rslora: true, alpha_pattern: {} });
    const [kept, most] = [of(few.tensors), of(all.tensors)];
    expect(kept.size).toBe(3);
    for (const [module, values] of kept) {
      const [rank, d] = all.tensors.get(`base_model.model.${module}.lora_A.weight`)!.shape as [
        number,
        number,
      ];
      const spectrum = (delta: Float64Array, by: number) =>
        singularValues({ rows: d, cols: delta.length / d, data: delta.map((v) => v * by) });
      const [ours, whole] = [spectrum(values, Math.sqrt(3)), spectrum(most.get(module)!, Math.sqrt(rank))];
      for (let i = 0; i < 3; i++) expect(ours[i]! / whole[i]!, module).toBeCloseTo(1, 5);
      expect((ours[3] ?? 0) / whole[0]!, module).toBeLessThan(1e-6);
    }
  });

  it.each([
    ['match: outputs', 'lambda: 1.3, match: outputs', /not of the rank of the LoRAs/],
    ['a density', 'lambda: 1.3, density: 0.5', /trims changes/],
  ])('%s is refused, with what to set', async (_, parameters, message) => {
    const text = yaml('adapter').replace('lambda: 1.3', parameters);
    await expect(planInNode(text, root, { ...folders, base })).rejects.toThrow(message);
  });
});

const untouched = async () =>
  (await mergeInNode('merge_method: passthrough\nmodels: [{model: base}]\n', root, { base })).tensors;

/** An adapter of the goldens without the factors of its head. */
async function onEmbedding(name: string): Promise<ModelFolder> {
  const folder = await diskFolder(name, join(root, '..', name));
  const read = async (path: string) => {
    const file = findFile(folder, path)!;
    return file.open().read(0, file.byteLength) as Promise<Uint8Array<ArrayBuffer>>;
  };
  const all = readTensors(await read('adapter_model.safetensors'), name);
  const kept = sortForFile(
    [...all]
      .filter(([key]) => /lora_embedding|q_proj/.test(key))
      .map(([key, t]) => ({
        ...{ name: key, dtype: t.dtype as Dtype, shape: t.shape, byteLength: t.bytes.length, bytes: t.bytes },
      })),
  );
  const config = JSON.parse(new TextDecoder().decode(await read('adapter_config.json')));
  const plain = { ...config, ensure_weight_tying: false, target_modules: ['embed_tokens', 'q_proj'] };
  const files = {
    'adapter_config.json': new TextEncoder().encode(JSON.stringify(plain)),
    'adapter_model.safetensors': Buffer.concat([
      buildSafetensorsHeader(kept, {}),
      ...kept.map(({ bytes }) => bytes),
    ]),
  };
  return {
    ...folder,
    files: Object.entries(files).map(([path, bytes]) => ({
      ...{ path, byteLength: bytes.length },
      open: () => ({
        byteLength: bytes.length,
        read: async (from: number, to: number) => new Uint8Array(bytes.subarray(from, to)),
      }),
    })),
  };
}

function inputOf(name: string) {
  return readTensors(new Uint8Array(readFileSync(join(folders[name]!, 'adapter_model.safetensors'))), name);
}
