import { describe, expect, it } from 'vitest';
import type { Recipe, RecipeSlice } from '../../formats/recipe';
import {
  memoryFolder,
  openerOf,
  safetensors,
  type TinyOptions,
  tinyModel,
} from '../../inputs/memory-models.test.support';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import type { Plan } from './plan';
import { makePlan } from './recipe-plan';

type Source = RecipeSlice['sources'][number];
const source = (model: string, begin: number, end: number, parameters = {}): Source => ({
  model,
  layerRange: [begin, end],
  parameters,
});
const stack = (slices: Source[][], changes: Partial<Recipe> = {}): Recipe => ({
  mergeMethod: 'passthrough',
  slices: slices.map((sources) => ({ sources, parameters: {} })),
  parameters: {},
  amalgam: {},
  ...changes,
});
const planOf = (recipe: Recipe, ...folders: ModelFolder[]) =>
  makePlan(recipe, openerOf(...folders), methodById);
const errors = (plan: Plan) => plan.problems.filter((p) => p.severity === 'error').map((p) => p.code);
const config = (plan: Plan) =>
  JSON.parse((plan.extras.find((e) => e.path === 'config.json')!.content as { text: string }).text);
/** Output tensor → where its bytes come from. */
const copies = (plan: Plan) =>
  Object.fromEntries(plan.tensors.map((t) => [t.name, `${t.copy?.folder}: ${t.copy?.key}`]));

describe('slices', () => {
  it.each([
    ['slerp', { t: 0.5 }, []],
    ['ties', {}, ['BaseListed']],
  ])(
    'a base among the sources is left out of differences only: %s',
    async (mergeMethod, parameters, said) => {
      const recipe = stack([[source('base', 0, 1), source('m', 0, 1)]], {
        mergeMethod,
        parameters,
        baseModel: 'base',
      });
      const { problems } = await planOf(recipe, tinyModel('base'), tinyModel('m'));
      expect(problems.map(({ code }) => code).filter((code) => code === 'BaseListed')).toEqual(said);
    },
  );

  it('stack layers: embeddings of the first slice, norm and head of the last', async () => {
    const kinds = { layer_types: ['a', 'b', 'c'] };
    const plan = await planOf(
      stack([[source('m', 0, 2)], [source('n', 1, 3)]]),
      tinyModel('m', { layers: 3, head: true, config: kinds }),
      tinyModel('n', { layers: 3, head: true, config: kinds }),
    );
    expect(errors(plan)).toEqual([]);
    expect(plan.layers).toBe(4);
    const from = copies(plan);
    expect(from['model.embed_tokens.weight']).toBe('m: model.embed_tokens.weight');
    expect(from['model.layers.1.mlp.up_proj.weight']).toBe('m: model.layers.1.mlp.up_proj.weight');
    expect(from['model.layers.2.mlp.up_proj.weight']).toBe('n: model.layers.1.mlp.up_proj.weight');
    expect(from['model.layers.3.input_layernorm.weight']).toBe('n: model.layers.2.input_layernorm.weight');
    expect(from['model.norm.weight']).toBe('n: model.norm.weight');
    expect(from['lm_head.weight']).toBe('n: lm_head.weight');
    expect(plan.tensors).toHaveLength(4 * 3 + 3);
    expect(config(plan)).toMatchObject({ num_hidden_layers: 4, layer_types: ['a', 'b', 'b', 'c'] });
  });

  it('may repeat layers of one model', async () => {
    const plan = await planOf(stack([[source('m', 0, 2)], [source('m', 0, 2)]]), tinyModel('m'));
    expect(plan.layers).toBe(4);
    expect(copies(plan)['model.layers.3.mlp.up_proj.weight']).toBe('m: model.layers.1.mlp.up_proj.weight');
    // Read for every layer it becomes.
    expect(plan.inputs).toHaveLength(1);
    expect(plan.inputs[0]!.readBytes).toBe(4 * (8 * 4 + 4 * (16 + 32 + 4) + 4));
  });

  it('merge within a slice: gradients run over its own layers, filters see the names of the models', async () => {
    const weight = [{ filter: 'layers.3.', value: 5 }, { value: [0, 1] }];
    const plan = await planOf(
      stack([[source('m', 0, 3, { weight: [0, 1] }), source('n', 1, 4, { weight })]], {
        mergeMethod: 'linear',
      }),
      tinyModel('m', { layers: 4 }),
      tinyModel('n', { layers: 4 }),
    );
    // Every weight at position 0 is 0: that cannot be normalized.
    expect(errors(plan)).toEqual(['WeightsCancel']);
    const weights = (name: string) =>
      plan.tensors.find((t) => t.name === name)!.models.map((m) => m.parameters.weight);
    expect(weights('model.layers.1.mlp.up_proj.weight')).toEqual([0.5, 0.5]);
    expect(weights('model.layers.2.mlp.up_proj.weight')).toEqual([1, 5]);
  });

  it('take the base from the same layers, or from those the recipe lists', async () => {
    const folders = [tinyModel('base', { layers: 3 }), tinyModel('m', { layers: 3 })];
    const delta = { mergeMethod: 'task_arithmetic', baseModel: 'base', parameters: { weight: 1 } };
    const origin = (plan: Plan) =>
      plan.tensors.find((t) => t.name === 'model.layers.0.mlp.up_proj.weight')!.base!.origin.key;
    const implied = await planOf(stack([[source('m', 1, 3)]], delta), ...folders);
    expect(origin(implied)).toBe('model.layers.1.mlp.up_proj.weight');
    const listed = await planOf(stack([[source('m', 1, 3), source('base', 0, 2)]], delta), ...folders);
    expect(origin(listed)).toBe('model.layers.0.mlp.up_proj.weight');
    expect(listed.contributors).toEqual(['m']);
  });

  const folders = [
    tinyModel('m', { layers: 3 }),
    tinyModel('n', { layers: 3 }),
    tinyModel('base', { layers: 3 }),
  ];
  it.each([
    ['layers that are not there', stack([[source('m', 1, 5)]]), 'LayerRangeOutside'],
    [
      'ranges of different length',
      stack([[source('m', 0, 2), source('n', 0, 3)]], { mergeMethod: 'linear', parameters: { weight: 1 } }),
      'LayerRangesDiffer',
    ],
    [
      'a base that is not clear',
      stack([[source('m', 0, 2), source('n', 1, 3)]], {
        mergeMethod: 'ties',
        baseModel: 'base',
        parameters: { weight: 1 },
      }),
      'BaseLayersUnclear',
    ],
    ['several models for passthrough', stack([[source('m', 0, 2), source('n', 0, 2)]]), 'ModelCount'],
  ])('refuse %s', async (_, recipe, code) => {
    expect(errors(await planOf(recipe, ...folders))).toEqual([code]);
  });

  it('say where what a layer is follows from its index', async () => {
    const codes = async (config: Record<string, unknown>, ...starts: number[]) => {
      const slices = starts.map((start) => [source('m', start, start + 2)]);
      const plan = await planOf(stack(slices), tinyModel('m', { layers: 4, config }));
      return plan.problems.map((p) => `${p.severity} ${p.code}`);
    };
    // nothing in this config says what the model computes
    expect(await codes({ model_type: 'novel' }, 0, 1)).toEqual(['warning LayerKindsUnknown']);
    expect(await codes({ model_type: 'novel' }, 0, 2)).toEqual([]);
    const dense = { model_type: 'deepseek_v3', first_k_dense_replace: 1 };
    expect(await codes(dense, 0, 1)).toEqual([]);
    expect(await codes(dense, 0, 0)).toEqual(['error LayerKindsFixed']);
  });

  it('cut the language model of a multimodal one', async () => {
    const vision = Object.fromEntries(
      [0, 1, 2].map((i) => [`model.vision_tower.layers.${i}.w.weight`, ['F32', [2, 2]] as ['F32', number[]]]),
    );
    const text = Object.fromEntries(
      [0, 1, 2, 3].map((i) => [
        `model.language_model.layers.${i}.w.weight`,
        ['F32', [2, 2]] as ['F32', number[]],
      ]),
    );
    const nested = (layers: number) => ({
      model_type: 'novel_text',
      num_hidden_layers: layers,
      layer_types: ['a', 'b', 'c', 'd'],
    });
    const model = memoryFolder('m', {
      'config.json': { model_type: 'novel', text_config: nested(4), vision_config: { num_hidden_layers: 3 } },
      'model.safetensors': safetensors({ ...vision, ...text }),
    });
    const plan = await planOf(stack([[source('m', 0, 2)], [source('m', 3, 4)]]), model);
    expect(errors(plan)).toEqual([]);
    expect(plan.tensors.map((t) => t.name).filter((n) => n.includes('vision'))).toHaveLength(3);
    expect(copies(plan)['model.language_model.layers.2.w.weight']).toBe(
      'm: model.language_model.layers.3.w.weight',
    );
    expect(config(plan)).toMatchObject({
      text_config: { num_hidden_layers: 3, layer_types: ['a', 'b', 'd'] },
      vision_config: { num_hidden_layers: 3 },
    });
  });
});

describe('layers of models that are not alike', () => {
  const part = (path: string, options: TinyOptions = {}) =>
    tinyModel(path, { whole: true, hidden: 8, ...options });
  /** Tensors of both layers. */
  const both = (names: string[], shape: number[]) =>
    Object.fromEntries(
      [0, 1].flatMap((i) =>
        names.map((name) => [`model.layers.${i}.${name}`, ['F32', shape] as ['F32', number[]]]),
      ),
    );
  const inside = {
    ...both(['mlp.gate_proj.weight', 'mlp.up_proj.weight'], [24, 8]),
    ...both(['mlp.down_proj.weight'], [8, 24]),
  };
  const keys = both(['self_attn.k_proj.weight', 'self_attn.v_proj.weight'], [4, 8]);
  const biases = both(
    ['q', 'k', 'v', 'o'].map((side) => `self_attn.${side}_proj.bias`),
    [8],
  );
  const others: [string, TinyOptions][] = [
    ['another width inside', { config: { intermediate_size: 24 }, tensors: inside }],
    ['fewer heads of keys', { config: { num_key_value_heads: 1 }, tensors: keys }],
    ['biases', { config: { attention_bias: true }, tensors: biases }],
  ];
  it.each(
    others.flatMap(([words, other]) => [[words, 'first', other] as const, [words, 'last', other] as const]),
  )('are refused where no config says both: %s, %s', async (_, place, other) => {
    const refused = async (...names: string[]) => {
      const slices = names.map((name) => [source(name, 0, 2)]);
      return errors(await planOf(stack(slices), part('plain'), part('other', other)));
    };
    expect(await (place === 'first' ? refused('other', 'plain') : refused('plain', 'other'))).toEqual([
      'StackUnfit',
    ]);
    expect(await refused('other', 'other')).toEqual([]);
  });
});
