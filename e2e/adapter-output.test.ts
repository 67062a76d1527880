import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { createCpuBackend } from '../src/backend/cpu/cpu-backend';
import { openPlannedWeights } from '../src/evaluate/planned-weights';
import type { Dtype } from '../src/formats/dtype';
import { parseRecipe } from '../src/formats/recipe-yaml';
import type { OpenModels } from '../src/host/models';
import { memoryFolder, safetensors } from '../src/inputs/memory-models.test.support';
import { openModel } from '../src/inputs/opened-model';
import { readingRows } from '../src/inputs/row-reader';
import { planReport } from '../src/merge/plan/plan-report';
import { planToRun } from '../src/recipe/recipe-jobs';
import { findFile, type ModelFolder } from '../src/sources/model-folder';
import {
  expectPeftMerge,
  mergedAdapter,
  type OutputCase,
  outputCases,
  products,
  recipeOf,
  written,
} from './adapter-output-cases';
import { diskFolder } from './disk-folder';
import { goldenFolder } from './goldens';
import { largestDifference, mergeInNode, planInNode, readTensors, type Tensors } from './merge-in-node';

const root = join(goldenFolder('adapters'), 'add_weighted_adapter');
const base = join(root, '../bases/llama');
const cases = outputCases(root);
const folders = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, join(root, 'inputs', name)]));

describe('adapters merged into an adapter, as PEFT 0.21 merges them', () => {
  it.each(cases.filter(({ name }) => name !== 'dare_linear').map((c) => [c.name, c] as const))(
    '%s',
    (_, given) => expectPeftMerge(root, given),
  );

  it('dare_linear keeps about the density of the factors, scaled by its inverse, the same every time', async () => {
    const given = cases.find(({ name }) => name === 'dare_linear')!;
    const linear = await mergedAdapter(root, {
      ...given,
      combination_type: 'linear',
      adapters: ['a'],
      weights: [1],
    });
    const one: OutputCase = { ...given, adapters: ['a'], weights: [1] };
    const drawn = await mergedAdapter(root, one);
    expect(await mergedAdapter(root, one)).toEqual(drawn);
    let kept = 0;
    let all = 0;
    for (const [name, { values }] of drawn) {
      const whole = linear.get(name)!.values;
      for (const [i, value] of values.entries()) {
        all++;
        if (value === 0) continue;
        kept++;
        expect(value).toBeCloseTo(whole[i]! / given.density!, 5);
      }
    }
    // four standard deviations of a fair draw
    expect(Math.abs(kept / all - given.density!)).toBeLessThan(4 * Math.sqrt(0.25 / all));
  });
});

it('cat is exact: the base with the merged adapter is the merged model', async () => {
  const given = cases.find(({ name }) => name === 'cat_negative')!;
  const model = await mergeInNode(recipeOf(given, 'model'), root, { ...folders, base });
  const { adapterFolder } = await writtenAdapter(given);
  const alone = 'merge_method: passthrough\nmodels:\n  - model: base+merged\n';
  const { tensors } = await mergeInNode(alone, root, { base, merged: adapterFolder });
  for (const [name, { values }] of model.tensors) {
    expect(largestDifference(tensors.get(name)!.values, values).relative, name).toBeLessThan(1e-5);
  }
});

/** The output of a case as a folder that can be opened. */
const writtenAdapter = (given: OutputCase) => written(root, recipeOf(given), folders);

it.each([
  [
    'its Hub name at a commit',
    `owner/base@${'a'.repeat(40)}`,
    { base: 'owner/base', revision: 'a'.repeat(40) },
  ],
  ['what the inputs were trained on, for a folder', './models/base', { base: 'bases/llama', revision: null }],
])('the base is called %s', async (_, named, expected) => {
  const yaml = `merge_method: passthrough\nmodels: [{model: ${named}+a}]\namalgam: {output: adapter}\n`;
  const { plan } = await planInNode(yaml, root, folders);
  const { text } = plan.extras.find(({ path }) => path === 'adapter_config.json')!.content as {
    text: string;
  };
  const { base_model_name_or_path: base, revision } = JSON.parse(text);
  expect({ base, revision }).toEqual(expected);
});

it('a share to keep means that the change is cut; beside another combination it has no effect, and is named', async () => {
  const yaml = (more: string) =>
    `merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: base+a, parameters: {weight: 1}}]\namalgam: {output: adapter, energy: 0.9${more}}\n`;
  const cut = await planInNode(yaml(''), root, { ...folders, base });
  expect(cut.plan.cut?.rank).toEqual({ kind: 'energy', share: 0.9 });
  const { plan } = await planInNode(yaml(', combination: cat'), root, { ...folders, base });
  expect(plan.cut).toBeUndefined();
  expect(plan.problems.find(({ code }) => code === 'ParameterIgnored')?.message).toMatch(/energy/);
});

it('a plan says which adapters each factor is made of', async () => {
  const { plan } = await planInNode(recipeOf(cases.find(({ name }) => name === 'cat')!), root, folders);
  const everyone = plan.contributors.map((_, i) => i);
  expect(everyone.length).toBeGreaterThan(1);
  expect(planReport(plan).tensors.map(({ contributors }) => contributors)).toContainEqual(everyone);
});

it('runs as the base with the adapter that it would write on top', async () => {
  vi.stubGlobal('navigator', { hardwareConcurrency: 2 });
  const given = cases.find(({ name }) => name === 'svd')!;
  const { recipe } = parseRecipe(recipeOf(given));
  const opened = new Map<string, ModelFolder>();
  const open = async (path: string) => {
    const folder = await diskFolder(path, path === 'base' ? base : folders[path]!);
    opened.set(path, folder);
    return openModel(folder, path);
  };
  const plan = await planToRun(recipe!, { open } as OpenModels);
  vi.unstubAllGlobals();
  expect(plan.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  const { adapterFolder } = await writtenAdapter(given);
  const alone = 'merge_method: passthrough\nmodels:\n  - model: base+merged\n';
  const { tensors } = await mergeInNode(alone, root, { base, merged: adapterFolder });
  const read = readingRows((ref, begin, end) =>
    findFile(opened.get(ref.folder)!, ref.file)!
      .open()
      .read(ref.begin + begin, ref.begin + end),
  );
  const weights = await openPlannedWeights(plan, [createCpuBackend()], read, false);
  for (const [name, { bytes }] of tensors) {
    const made = await weights.read(name, 0, bytes.length);
    expect(Buffer.compare(made, bytes), name).toBe(0);
  }
  weights.close();
});

it('what an adapter says and the output does not is named', async () => {
  const folder = await diskFolder('a', folders.a!);
  const config = JSON.parse(readFileSync(join(folders.a!, 'adapter_config.json'), 'utf8'));
  const bytes = new TextEncoder().encode(JSON.stringify({ ...config, lora_scaling_trick: 2 }));
  const odd: ModelFolder = {
    ...folder,
    files: folder.files.map((file) =>
      file.path === 'adapter_config.json'
        ? {
            ...file,
            byteLength: bytes.length,
            open: () => ({ byteLength: bytes.length, read: async (from, to) => bytes.slice(from, to) }),
          }
        : file,
    ),
  };
  const yaml = 'merge_method: passthrough\nmodels: [{model: base+a}]\namalgam: {output: adapter}\n';
  const { plan } = await planInNode(yaml, root, { a: odd });
  expect(plan.problems).toContainEqual(
    expect.objectContaining({
      code: 'AdapterFieldsUnknown',
      message: expect.stringContaining('lora_scaling_trick'),
    }),
  );
});

describe('what cannot become an adapter', () => {
  const plan = (yaml: string) => planInNode(yaml, root, { ...folders, base });
  const models = (...names: string[]) =>
    names.map((name) => `  - model: ${name}\n    parameters: {weight: 1}\n`).join('');

  it.each([
    [
      'a whole model',
      `merge_method: task_arithmetic\nbase_model: x\nmodels:\n${models('base')}amalgam: {output: adapter, combination: cat}\n`,
      /base is a whole model/,
    ],
    [
      'several bases',
      `merge_method: task_arithmetic\nmodels:\n${models('x+a', 'y+b')}amalgam: {output: adapter}\n`,
      /several bases: x, y/,
    ],
    [
      'a combination of another method',
      `merge_method: ties\nmodels:\n${models('x+a', 'x+b')}amalgam: {output: adapter, combination: cat}\n`,
      /cat belongs to task_arithmetic/,
    ],
    [
      'factors of several ranks',
      `merge_method: task_arithmetic\nmodels:\n${models('x+a', 'x+c')}amalgam: {output: adapter, combination: linear}\n`,
      /linear needs one rank/,
    ],
    [
      'λ that is tuned on text',
      `merge_method: ties
parameters: {lambda: auto}
models:
${models('x+a', 'x+b')}amalgam: {output: adapter}
`,
      /nothing is run where adapters become an adapter/,
    ],
  ])('%s', async (_, yaml, message) => {
    await expect(plan(yaml)).rejects.toThrow(message);
  });
});

describe("what PEFT's add_weighted_adapter makes of it silently", () => {
  // `replace(peft_config[adapters[0]], r=…, lora_alpha=…)` of PEFT's tuners/lora/model.py keeps use_rslora and use_dora
  const folderWith = async (name: string, config: Record<string, unknown>, more: Tensors = new Map()) => {
    const files = Object.fromEntries(
      ['adapter_config.json', 'adapter_model.safetensors'].map((file) => [
        file,
        new Uint8Array(readFileSync(join(root, 'inputs', name, file))),
      ]),
    );
    const tensors = readTensors(files['adapter_model.safetensors']!, name);
    const all = new Map([...tensors, ...more]);
    const weights = safetensors(
      Object.fromEntries([...all].map(([key, { dtype, shape }]) => [key, [dtype as Dtype, shape]])),
    );
    let at = weights.length - [...all.values()].reduce((n, { bytes }) => n + bytes.length, 0);
    for (const { bytes } of all.values()) {
      weights.set(bytes, at);
      at += bytes.length;
    }
    const settings = { ...JSON.parse(new TextDecoder().decode(files['adapter_config.json'])), ...config };
    return {
      tensors,
      settings,
      folder: memoryFolder(`${name}-changed`, {
        'adapter_config.json': settings,
        'adapter_model.safetensors': weights,
      }),
    };
  };
  const recipe = (combination: string, output: string) =>
    `merge_method: task_arithmetic\nbase_model: base\nmodels:\n  - {model: base+one, parameters: {weight: 0.7}}\n  - {model: base+two, parameters: {weight: -0.4}}\namalgam: {output: ${output}${combination}}\n`;

  it.each(['cat', 'svd, rank: 16'])('of rsLoRA, %s is the sum of the scaled updates', async (combination) => {
    const one = await folderWith('a', { use_rslora: true });
    const two = await folderWith('b', {});
    const given = { base, one: one.folder, two: two.folder };
    const { adapterFolder } = await written(root, recipe(`, combination: ${combination}`, 'adapter'), given);
    const alone = 'merge_method: passthrough\nmodels:\n  - model: base+merged\n';
    const { tensors } = await mergeInNode(alone, root, { base, merged: adapterFolder });
    const before = (await mergeInNode(alone.replace('+merged', ''), root, { base })).tensors;
    const [first, second] = [one, two].map((of) => products(of.tensors, of.settings));
    expect(first!.size).toBeGreaterThan(2);
    for (const [module, delta] of first!) {
      const W = before.get(`${module}.weight`)!.values;
      const expected = W.map((w, i) => w + 0.7 * delta[i]! - 0.4 * second!.get(module)![i]!);
      const ours = tensors.get(`${module}.weight`)!.values;
      expect(largestDifference(ours, expected).relative, module).toBeLessThan(2e-6);
    }
  });

  it.each([
    ['DoRA', { use_dora: true }, 'lora_magnitude_vector'],
    ['lora_bias', { lora_bias: true }, 'lora_B.bias'],
  ])('%s is refused by its name, or cut from the change', async (name, config, part) => {
    const { tensors } = await folderWith('a', {});
    const more: Tensors = new Map(
      [...tensors]
        .filter(([key]) => key.endsWith('.lora_B.weight'))
        .map(([key, { shape }]) => {
          const values = new Float32Array(shape[0]!).fill(0.5);
          const bytes = new Uint8Array(values.buffer);
          return [key.replace('lora_B.weight', part), { dtype: 'F32', shape: [shape[0]!], values, bytes }];
        }),
    );
    const one = (await folderWith('a', config, more)).folder;
    const given = { base, one, two: folders.b! };
    for (const combination of ['cat', 'svd', 'linear']) {
      const plan = planInNode(recipe(`, combination: ${combination}`, 'adapter'), root, given);
      await expect(plan).rejects.toThrow(new RegExp(`uses ${name}`));
    }
    if (name === 'DoRA') {
      const { plan } = await planInNode(recipe(', combination: merged_svd', 'adapter'), root, given);
      expect(plan.cut).toBeDefined();
    }
  });
});
