import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { goldenFolder } from '../../../e2e/goldens';
import { mergeInNode, readTensors } from '../../../e2e/merge-in-node';
import type { Recipe } from '../../formats/recipe';
import { parseRecipe } from '../../formats/recipe-yaml';
import {
  factors,
  memoryFolder,
  openerOf,
  recipeOf,
  safetensors,
  type TinyOptions,
  tinyAdapter,
  tinyModel,
  tinyShapes,
} from '../../inputs/memory-models.test.support';
import { methodById } from '../methods';
import { planReport } from './plan-report';
import { makePlan } from './recipe-plan';

const folder = goldenFolder('mergekit');
const file = (name: string) => new Uint8Array(readFileSync(join(folder, name)));
const models = Object.fromEntries(
  ['base', 'a', 'b'].map((name) => [
    name,
    memoryFolder(name, {
      'config.json': file('config.json'),
      'model.safetensors': file(`in_${name}.safetensors`),
      'tokenizer.json': '{"model":{"vocab":{}}}',
    }),
  ]),
);
const inputs = (name: string) => readTensors(file(`in_${name}.safetensors`), name);
const recipe = (extra: string, method = 'task_arithmetic') => `merge_method: ${method}
base_model: base
models:
  - {model: a, parameters: {weight: 0.5}}
  - {model: b, parameters: {weight: 0.25}}
${extra}`;
const planOf = (text: string) =>
  makePlan(parseRecipe(text).recipe as Recipe, openerOf(...Object.values(models)), methodById);
const codes = async (text: string) => (await planOf(text)).problems.map((p) => p.code);

describe('include and exclude', () => {
  it.each<[string, string, (name: string) => boolean]>([
    ['what is excluded', 'exclude: [mlp, "model.layers.1.*"]', (n) => /mlp|layers\.1\./.test(n)],
    ['what is not included', 'include: [self_attn]', (n) => !n.includes('self_attn')],
    [
      'exclude goes before include',
      'include: ["*.layers.*"], exclude: ["*.q_proj.weight"]',
      (n) => !n.includes('.layers.') || n.endsWith('.q_proj.weight'),
    ],
  ])('keeps the base’s bytes: %s', async (_, choice, kept) => {
    const text = recipe(`amalgam: {${choice}}\n`);
    const { tensors } = await mergeInNode(text, folder, models);
    const whole = (await mergeInNode(recipe(''), folder, models)).tensors;
    const base = inputs('base');
    const names = [...tensors.keys()];
    expect(names.filter(kept).length).toBeGreaterThan(0);
    expect(names.filter(kept).length).toBeLessThan(names.length);
    for (const name of names) {
      expect(tensors.get(name)!.bytes, name).toEqual((kept(name) ? base : whole).get(name)!.bytes);
    }
  });

  it('shows in the plan: the tensors by name, and what changes them', async () => {
    const report = planReport(await planOf(recipe('amalgam: {exclude: [mlp]}\n')));
    const left = report.tensors.filter((tensor) => tensor.leftOut).map((tensor) => tensor.name);
    expect(left.length).toBe(9);
    expect(left.every((name) => name.includes('mlp'))).toBe(true);
    expect(report.tensors.find((t) => t.leftOut)).toMatchObject({ copied: true, contributors: [] });
    expect(report.problems).toEqual([
      expect.objectContaining({ severity: 'note', code: 'TensorsLeftOut', tensors: left }),
    ]);
  });

  it('keeps the base as it is stored even where the output has another dtype', async () => {
    const { tensors } = await mergeInNode(
      recipe('dtype: bfloat16\namalgam: {exclude: [mlp]}\n'),
      folder,
      models,
    );
    expect(tensors.get('model.layers.0.mlp.up_proj.weight')!.dtype).toBe('F32');
    expect(tensors.get('model.layers.0.self_attn.q_proj.weight')!.dtype).toBe('BF16');
  });

  it('of a method without a base needs the base among its models', async () => {
    expect(await codes(recipe('amalgam: {exclude: [mlp]}\n', 'linear'))).toContain('NoBaseToKeep');
    const listed = recipe(
      '  - {model: base, parameters: {weight: 1}}\namalgam: {exclude: [mlp]}\n',
      'linear',
    );
    const { tensors } = await mergeInNode(listed, folder, models);
    const name = 'model.layers.2.mlp.down_proj.weight';
    expect(tensors.get(name)!.bytes).toEqual(inputs('base').get(name)!.bytes);
  });

  it('that leave nothing to merge are refused', async () => {
    expect(await codes(recipe('amalgam: {exclude: ["*"]}\n'))).toEqual(['NothingToMerge']);
  });
});

describe('patterns that mean no tensor', () => {
  it.each([
    [
      'a filter of a model',
      recipe('').replace('weight: 0.5', 'weight: [{filter: mpl, value: 1}, {value: 0.5}]'),
    ],
    [
      'a filter of the recipe',
      recipe('parameters: {lambda: [{filter: "q_proj*", value: 0.5}, {value: 1}]}\n'),
    ],
    ['include', recipe('amalgam: {include: [self_attn, vision]}\n')],
    ['exclude', recipe('amalgam: {exclude: ["*.layers.9.*"]}\n')],
  ])('are warned of: %s', async (_, text) => {
    const { problems } = await planOf(text);
    expect(problems.find((p) => p.code === 'PatternUnused')).toMatchObject({
      severity: 'warning',
      message: expect.stringMatching(/mpl|q_proj\*|vision|layers\.9/) as string,
    });
  });
});

describe('filters of parameters', () => {
  const weightOf = async (filters: string) => {
    const plan = await planOf(recipe('').replace('weight: 0.5', `weight: [${filters}, {value: 0}]`));
    return new Map(plan.tensors.map((t) => [t.name, t.models[0]?.parameters.weight]));
  };
  it.each([
    ['a module', '{filter: self_attn, value: 1}', (n: string) => n.includes('self_attn')],
    ['an exact name', '{filter: model.norm.weight, value: 1}', (n: string) => n === 'model.norm.weight'],
    ['a glob', '{filter: "*.q_proj.weight", value: 1}', (n: string) => n.endsWith('.q_proj.weight')],
    ['a glob of layers', '{filter: "model.layers.?.*", value: 1}', (n: string) => n.includes('.layers.')],
    [
      'a star inside a word is a glob too',
      '{filter: "model.layers.0.*norm*", value: 1}',
      (n: string) => /layers\.0\..*norm/.test(n),
    ],
  ])('by %s', async (_, filters, means) => {
    for (const [name, weight] of await weightOf(filters)) expect(weight, name).toBe(means(name) ? 1 : 0);
  });

  it('source goes before slice before the whole recipe, and a level whose filters all miss is passed over', async () => {
    const plan = await planOf(`merge_method: task_arithmetic
base_model: base
slices:
  - sources:
      - {model: a, layer_range: [0, 3], parameters: {weight: [{filter: q_proj, value: 1}]}}
      - {model: b, layer_range: [0, 3]}
    parameters: {weight: [{filter: "*.self_attn.*", value: 2}]}
parameters: {weight: 3}
`);
    const weights = (name: string) =>
      plan.tensors
        .find((t) => t.name === `model.layers.1.${name}.weight`)!
        .models.map((m) => m.parameters.weight);
    expect(weights('self_attn.q_proj')).toEqual([1, 2]);
    expect(weights('self_attn.k_proj')).toEqual([2, 2]);
    expect(weights('mlp.up_proj')).toEqual([3, 3]);
  });
});

const whole = (path: string, options: TinyOptions = {}) =>
  tinyModel(path, { whole: true, hidden: 8, vocabulary: 8, ...options });

test('what is left out of a merge need not be in every model, nor have the same rows', async () => {
  const excluding = recipeOf(['m'], { amalgam: { exclude: ['lm_head', 'embed_tokens'] } });
  const base = whole('base', { head: true });
  const headless = whole('m', { config: { tie_word_embeddings: false, architectures: ['LlamaModel'] } });
  const unnamed = whole('m', { config: { tie_word_embeddings: false } });
  const otherRows = whole('m', { head: true, vocabulary: 10 });
  const otherSize = whole('m', { head: true, vocabulary: 10, config: { vocab_size: 12 } });
  for (const other of [headless, unnamed, otherRows, otherSize]) {
    const plan = await makePlan(excluding, openerOf(base, other), methodById);
    expect(plan.problems.filter(({ severity }) => severity !== 'note')).toEqual([]);
  }
  // the base gives what is left out, and what is merged has to be there
  const bare = whole('base', { config: { tie_word_embeddings: false } });
  const swapped = await makePlan(excluding, openerOf(bare, whole('m', { head: true })), methodById);
  expect(swapped.problems.map(({ code }) => code)).toContain('HeadMissing');
  const both = whole('m', { config: { tie_word_embeddings: false, num_hidden_layers: 3 } });
  const missing = await makePlan(excluding, openerOf(base, both), methodById);
  expect(missing.problems.map(({ code }) => code)).toEqual(['TensorMissing']);
});

test('names that a training wrapped are those of the model, in checkpoints and in adapters', async () => {
  const wrapped = (wrap: (name: string) => string) =>
    whole('m', {
      files: {
        'model.safetensors': safetensors(
          Object.fromEntries(
            Object.entries(tinyShapes({ whole: true, hidden: 8 })).map(([n, s]) => [wrap(n), s]),
          ),
        ),
      },
    });
  const inLayer = (name: string) => name.replace(/(layers\.\d+\.)/, '$1_fsdp_wrapped_module.');
  const wraps = ['_orig_mod.', 'module.', '_forward_module.', 'base_model.model.'];
  for (const wrap of [inLayer, ...wraps.map((around) => (n: string) => `${around}${n}`)]) {
    const merged = await makePlan(recipeOf(['m']), openerOf(whole('base'), wrapped(wrap)), methodById);
    expect(merged.problems).toEqual([]);
    const lora = factors('model.layers.0.self_attn.q_proj', 8, 8);
    const keys = [
      (n: string) => wrap(n),
      (n: string) => `policy.${wrap(n)}`,
      (n: string) => n.replace('base_model.model.', `base_model.model.${wrap('')}`),
    ].map((rename) => Object.fromEntries(Object.entries(lora).map(([n, s]) => [rename(n), s])));
    for (const shapes of keys) {
      const plan = await makePlan(
        recipeOf(['base+a']),
        openerOf(whole('base'), tinyAdapter('a', shapes)),
        methodById,
      );
      expect(plan.problems).toEqual([]);
    }
  }
});

test.each([
  ['quanto', 'weight._data', 'weight._scale'],
  ['torchao', '_weight_qdata', '_weight_scale'],
])('eight bits by the names of %s are one error, first and alone', async (tool, data, scale) => {
  const q = 'model.layers.0.self_attn.q_proj';
  const tensors: TinyOptions['tensors'] = {
    [`${q}.weight`]: undefined,
    [`${q}.${data}`]: ['I8', [8, 8]],
    [`${q}.${scale}`]: ['BF16', [8, 1]],
  };
  const plan = await makePlan(recipeOf(['m']), openerOf(whole('base'), whole('m', { tensors })), methodById);
  expect(plan.problems.map(({ severity, message }) => `${severity} ${message}`)).toEqual([
    `error The weights of m are quantized (${tool}) and cannot be computed with.`,
  ]);
});

test('weights in a single file and in others that an index names: said which are taken', async () => {
  const weightMap = Object.fromEntries(
    Object.keys(tinyShapes({ whole: true, hidden: 8 })).map((name) => [name, 'a.safetensors']),
  );
  const twice = (files: object) =>
    whole('m', {
      files: {
        'a.safetensors': safetensors(tinyShapes({ whole: true, hidden: 8 })),
        'model.safetensors.index.json': { weight_map: weightMap },
        ...files,
      },
    });
  const folder = twice({});
  const plan = await makePlan(recipeOf(['m']), openerOf(whole('base'), folder), methodById);
  expect(plan.problems.map(({ severity, message }) => `${severity} ${message}`)).toEqual([
    expect.stringMatching(/^warning m has weights twice: in model.safetensors, .* in the 1 file/),
  ]);
  const files = folder.files.filter(({ path }) => path !== 'model.safetensors');
  const once = await makePlan(recipeOf(['m']), openerOf(whole('base'), { ...folder, files }), methodById);
  expect(once.problems).toEqual([]);
});

test('a config without a type, and an architecture that llama.cpp has no graph for, have their own next step', async () => {
  const copy = parseRecipe('merge_method: passthrough\nmodels: [{model: m}]\n').recipe as Recipe;
  const bare = await makePlan(
    copy,
    openerOf(tinyModel('m', { config: { model_type: undefined } })),
    methodById,
  );
  expect(bare.problems.map(({ code, message }) => `${code} ${message}`).join()).toMatch(
    /ConfigMissing .* names no model_type/,
  );
  const scaled = whole('m', { config: { rope_scaling: { rope_type: 'dynamic', factor: 2 } } });
  const gguf = await makePlan({ ...copy, amalgam: { gguf: 'F16' } }, openerOf(scaled), methodById);
  expect(gguf.problems.filter(({ severity }) => severity === 'error').map(({ remedy }) => remedy)).toEqual([
    'Write safetensors, or choose another model for the GGUF file.',
  ]);
});

test('what is left out must be in the base, or in the first model where there is none', async () => {
  const half = whole('m', { tensors: { 'model.norm.weight': undefined } });
  const [first, second] = ['m', 'base'].map((model) => ({ model, parameters: { weight: 0.5 } }));
  const of = async (models: (typeof first)[], more = {}) => {
    const recipe = { mergeMethod: 'linear', models, parameters: {}, amalgam: { exclude: ['norm'] }, ...more };
    const { problems } = await makePlan(recipe as Recipe, openerOf(whole('base'), half), methodById);
    return problems.filter(({ severity }) => severity === 'error').map(({ code }) => code);
  };
  expect(await of([first, second])).toEqual(['TensorMissing']);
  expect(await of([second, first], { mergeMethod: 'task_arithmetic', baseModel: 'm' })).toEqual([
    'TensorMissing',
  ]);
  expect(await of([first], { mergeMethod: 'task_arithmetic', baseModel: 'base' })).toEqual([]);
});
