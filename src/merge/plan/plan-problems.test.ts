import { describe, expect, it } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import {
  factors,
  memoryFolder,
  openerOf,
  recipeOf,
  safetensors,
  tinyAdapter,
  tinyModel,
} from '../../inputs/memory-models.test.support';
import type { PlanProblem } from '../../reports/plan';
import type { ModelFolder } from '../../sources/model-folder';
import { methodById } from '../methods';
import type { Plan } from './plan';
import { makePlan } from './recipe-plan';

const planOf = (recipe: Recipe, ...folders: ModelFolder[]) =>
  makePlan(recipe, openerOf(...folders), methodById);
const errors = (plan: Plan) => plan.problems.filter((p) => p.severity === 'error');
const codes = (problems: PlanProblem[]) => problems.map((p) => p.code);
const q0 = 'model.layers.0.self_attn.q_proj';

describe('R17 R18 R22: mismatches', () => {
  const base = tinyModel('base');
  const cases: [string, Recipe, ModelFolder[], string, RegExp][] = [
    ['an unknown method', recipeOf(['m'], { mergeMethod: 'dare-ties' }), [], 'MethodUnknown', /dare-ties/],
    [
      'no base',
      { ...recipeOf(['m']), baseModel: undefined } as never,
      [tinyModel('m')],
      'BaseMissing',
      /task_arithmetic/,
    ],
    [
      'no slices',
      { mergeMethod: 'passthrough', slices: [], parameters: {}, amalgam: {} },
      [],
      'NothingToMerge',
      /without tensors/,
    ],
    [
      'no models',
      recipeOf([]),
      [],
      'ModelCount',
      /0 models besides the base; task_arithmetic takes at least 1/,
    ],
    [
      'more models than an election has bits for',
      recipeOf(Array.from({ length: 33 }, (_, i) => `m${i}`)),
      Array.from({ length: 33 }, (_, i) => tinyModel(`m${i}`)),
      'ModelCount',
      /33 models besides the base; task_arithmetic takes at most 32/,
    ],
    [
      'two models for passthrough',
      { mergeMethod: 'passthrough', models: recipeOf(['m', 'n']).models!, parameters: {}, amalgam: {} },
      [tinyModel('m'), tinyModel('n')],
      'ModelCount',
      /exactly 1/,
    ],
    [
      'a model that cannot be opened',
      recipeOf(['m']),
      [memoryFolder('m', { 'pytorch_model.bin': 'x' })],
      'NotSafetensors',
      /pytorch_model\.bin/,
    ],
    [
      'another architecture',
      recipeOf(['m']),
      [tinyModel('m', { config: { model_type: 'mistral' } })],
      'ArchitectureMismatch',
      /m is a mistral model, but base is a llama model/,
    ],
    [
      'another hidden size',
      recipeOf(['m']),
      [tinyModel('m', { hidden: 8 })],
      'HiddenSizeMismatch',
      /8, but base has 4/,
    ],
    [
      'more layers',
      recipeOf(['m']),
      [tinyModel('m', { layers: 3 })],
      'LayerCountMismatch',
      /m has 3 layers, but base has 2/,
    ],
    [
      'another vocabulary',
      recipeOf(['m']),
      [tinyModel('m', { vocabulary: 10 })],
      'VocabularyMismatch',
      /m has a vocabulary of 10, but base has 8/,
    ],
    [
      'another shape',
      recipeOf(['m']),
      [tinyModel('m', { tensors: { 'model.layers.1.mlp.up_proj.weight': ['F32', [4, 8]] } })],
      'ShapeMismatch',
      /other shapes than those of base/,
    ],
    [
      'a tensor that is missing',
      recipeOf(['m']),
      [tinyModel('m', { tensors: { 'model.norm.weight': undefined } })],
      'TensorMissing',
      /m lacks tensors that base has/,
    ],
    [
      'a tensor that the base does not have',
      recipeOf(['m']),
      [tinyModel('m', { tensors: { 'model.layers.0.self_attn.q_proj.bias': ['F32', [4]] } })],
      'TensorMissing',
      /base lacks tensors that m has/,
    ],
    [
      'a dtype that cannot be computed with',
      recipeOf(['m']),
      [tinyModel('m', { tensors: { 'model.norm.weight': ['F64', [4]] } })],
      'DtypeUnsupported',
      /m stores tensors as F64/,
    ],
    [
      'quantized weights',
      recipeOf(['m']),
      [tinyModel('m', { config: { quantization_config: { quant_method: 'gptq' } } })],
      'Quantized',
      /gptq/,
    ],
    [
      'a weight that is missing',
      recipeOf([], { models: [{ model: 'm', parameters: {} }] }),
      [tinyModel('m')],
      'ParameterInvalid',
      /weight of m is missing/,
    ],
    [
      'a density out of bounds',
      recipeOf(['m'], { mergeMethod: 'ties', parameters: { density: [0.5, 101] } }),
      [tinyModel('m')],
      'ParameterInvalid',
      /density of m must lie between 0 and 1, not 101/,
    ],
    [
      'NaN',
      recipeOf(['m'], { parameters: { lambda: Number.NaN } }),
      [tinyModel('m')],
      'ParameterInvalid',
      /lambda must be a number, not NaN/,
    ],
    [
      'weights that cancel under normalize',
      recipeOf([], {
        mergeMethod: 'ties',
        models: [
          { model: 'm', parameters: { weight: 0.1 } },
          { model: 'n', parameters: { weight: -0.1 } },
        ],
      }),
      [tinyModel('m'), tinyModel('n')],
      'WeightsCancel',
      /add up to 0/,
    ],
    [
      'an adapter alone',
      recipeOf(['lora']),
      [tinyAdapter('lora', factors(q0, 4, 4))],
      'AdapterAlone',
      /lora is an adapter/,
    ],
    [
      'an adapter in the folder of a model',
      recipeOf(['lora']),
      [
        {
          ...tinyAdapter('lora', factors(q0, 4, 4)),
          files: [...tinyAdapter('lora', factors(q0, 4, 4)).files, ...tinyModel('lora').files],
        },
      ],
      'AdapterAlone',
      /Its folder holds a model too \(model.safetensors\)/,
    ],
    [
      'a model in the place of an adapter',
      recipeOf(['base+m']),
      [tinyModel('m')],
      'NotAnAdapter',
      /m stands behind/,
    ],
    [
      'an adapter for modules that are not there',
      recipeOf(['base+lora']),
      [
        tinyAdapter(
          'lora',
          { ...factors(q0, 4, 4), ...factors('model.layers.7.mlp.up_proj', 4, 8) },
          { task_type: 'CAUSAL_LM' },
        ),
      ],
      'AdapterModuleMissing',
      /1 of the 2 tensors that lora changes does not exist in base: layers\.7\.mlp\.up_proj\.weight/,
    ],
    [
      'a saved module that is not there',
      recipeOf(['base+lora']),
      [
        tinyAdapter(
          'lora',
          { ...factors(q0, 4, 4), 'base_model.model.score.weight': ['F32', [2, 4]] },
          { modules_to_save: ['score'], base_model_name_or_path: 'owner/other' },
        ),
      ],
      'AdapterModuleMissing',
      /score\.weight/,
    ],
    [
      'factors of another size',
      recipeOf(['base+lora']),
      [tinyAdapter('lora', factors(q0, 8, 8))],
      'AdapterShape',
      /tensors of lora do not fit the weights/,
    ],
    [
      'a bias for a module without one',
      recipeOf(['base+lora']),
      [
        tinyAdapter(
          'lora',
          { ...factors(q0, 4, 4), [`base_model.model.${q0}.lora_B.bias`]: ['F32', [4]] },
          { lora_bias: true },
        ),
      ],
      'AdapterModuleMissing',
      /q_proj\.bias/,
    ],
  ];
  it.each(cases)('%s', async (_, recipe, folders, code, message) => {
    const plan = await planOf(recipe, base, ...folders);
    const found = errors(plan).filter((p) => p.code === code);
    expect(found.map((p) => p.message)).toEqual([expect.stringMatching(message)]);
    expect(codes(errors(plan))).toEqual([code]);
    expect(found[0]!.remedy).toMatch(/\w/);
    expect(plan.shards).toEqual([]);
  });

  it('lists every tensor of a fault in one problem', async () => {
    const plan = await planOf(recipeOf(['m']), base, tinyModel('m', { vocabulary: 8, dtype: 'F64' }));
    expect(errors(plan)).toHaveLength(1);
    expect(errors(plan)[0]!.tensors).toHaveLength(8);
  });

  it('reports every model that cannot be opened', async () => {
    const broken = ['m', 'n'].map((path) => memoryFolder(path, { 'model.safetensors': 'short' }));
    const plan = await planOf(recipeOf(['m', 'n']), base, ...broken);
    expect(errors(plan).map((p) => p.code)).toEqual(['HeaderTooSmall', 'HeaderTooSmall']);
  });

  const warnings: [string, Recipe, ModelFolder[], string, RegExp][] = [
    [
      'another tokenizer',
      recipeOf(['m']),
      [tinyModel('m', { files: { 'tokenizer.json': '{"model":[]}' } })],
      'TokenizersDiffer',
      /m has another tokenizer\.json than base/,
    ],
    [
      'an unknown parameter',
      recipeOf(['m'], { parameters: { dnesity: 1 } }),
      [tinyModel('m')],
      'ParameterIgnored',
      /dnesity/,
    ],
    [
      'a parameter in the wrong place',
      recipeOf([], { models: [{ model: 'm', parameters: { weight: 1, lambda: 2 } }] }),
      [tinyModel('m')],
      'ParameterIgnored',
      /lambda is a parameter of the whole merge/,
    ],
    [
      'mixed dtypes',
      recipeOf(['m']),
      [tinyModel('m', { dtype: 'BF16' })],
      'DtypesDiffer',
      /F32 in base; BF16 in m/,
    ],
    [
      'no change',
      recipeOf([], { models: [{ model: 'm', parameters: { weight: 0 } }] }),
      [tinyModel('m')],
      'NothingChanged',
      /every tensor keeps the bytes of the base/,
    ],
    [
      'no tokenizer',
      recipeOf(['m'], { tokenizerSource: 't' }),
      [tinyModel('m'), memoryFolder('t', { 'model.safetensors': safetensors({ a: ['F32', [1]] }) })],
      'TokenizerMissing',
      /t has no tokenizer/,
    ],
  ];
  it.each(warnings)('says, but goes on: %s', async (_, recipe, folders, code, message) => {
    const plan = await planOf(recipe, base, ...folders);
    expect(plan.problems.filter((p) => p.code === code).map((p) => p.message)).toEqual([
      expect.stringMatching(message),
    ]);
    expect(plan.problems.find((p) => p.code === code)!.severity).not.toBe('error');
  });
});

describe('configs that say otherwise what is computed', () => {
  const base = { num_attention_heads: 2, rope_theta: 10_000, rms_norm_eps: 1e-6 };
  const warned = async (config: Record<string, unknown>) => {
    const plan = await planOf(
      recipeOf(['m']),
      tinyModel('base', { whole: true, hidden: 8, config: base }),
      tinyModel('m', { whole: true, hidden: 8, config }),
    );
    expect(errors(plan)).toEqual([]);
    return plan.problems
      .filter((p) => p.code === 'ConfigsDiffer')
      .map((p) => p.message)
      .join();
  };

  it.each([
    ['another base of positions', { ...base, rope_theta: 500_000 }, /rope_theta 500000 instead of 10000/],
    [
      'another base of positions in the new spelling',
      { ...base, rope_theta: undefined, rope_parameters: { rope_theta: 1e6, rope_type: 'default' } },
      /rope_theta 1000000 instead of 10000/,
    ],
    ['another epsilon', { ...base, rms_norm_eps: 1e-5 }, /rms_norm_eps/],
    [
      'other heads of the same shapes',
      { ...base, num_attention_heads: 4 },
      /num_attention_heads 4 instead of 2/,
    ],
  ])('%s', async (_, config, text) => {
    expect(await warned(config)).toMatch(text);
  });

  it('are no matter where they say the same, or something else', async () => {
    expect(await warned({ ...base, rms_norm_eps: 0.000001, initializer_range: 0.1, eos_token_id: 3 })).toBe(
      '',
    );
    const respelled = {
      ...base,
      rope_theta: undefined,
      rope_parameters: { rope_theta: 10_000, rope_type: 'default' },
    };
    expect(await warned(respelled)).toBe('');
  });
});
