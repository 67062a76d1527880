import { describe, expect, it } from 'vitest';
import { methodById } from '../merge/methods';
import type { Plan } from '../merge/plan/plan';
import { makePlan } from '../merge/plan/recipe-plan';
import type { ModelFolder } from '../sources/model-folder';
import {
  factors,
  memoryFolder,
  openerOf,
  recipeOf,
  type Shapes,
  safetensors,
  tinyAdapter,
  tinyModel,
} from './memory-models.test.support';
import type { TensorView } from './tensor-view';

const planOf = (models: string[], ...folders: ModelFolder[]): Promise<Plan> =>
  makePlan(recipeOf(models), openerOf(...folders), methodById);
const tensor = (plan: Plan, name: string) => plan.tensors.find((t) => t.name === name)!;
const viewOf = (plan: Plan, name: string): TensorView => tensor(plan, name).models[0]!.view;
const errors = (plan: Plan) => plan.problems.filter((p) => p.severity === 'error').map((p) => p.code);
const q0 = 'model.layers.0.self_attn.q_proj';
const up1 = 'model.layers.1.mlp.up_proj';

/** A GPT-2 of one layer, hidden size 4: weights of blocks as [in, out]. */
function gpt2(path: string, config: object = { model_type: 'gpt2', n_layer: 1, n_embd: 4 }): ModelFolder {
  return memoryFolder(path, {
    'config.json': config,
    'model.safetensors': safetensors({
      'wte.weight': ['F32', [8, 4]],
      'h.0.attn.c_attn.weight': ['F32', [4, 12]],
      'h.0.attn.c_attn.bias': ['F32', [12]],
      'h.0.attn.c_proj.weight': ['F32', [4, 4]],
      'h.0.mlp.c_fc.weight': ['F32', [4, 4]],
      'ln_f.weight': ['F32', [4]],
    }),
    'tokenizer.json': '{"model":{"vocab":{}}}',
  });
}

describe('adapters', () => {
  it('on the base add a low-rank update and nothing else', async () => {
    const plan = await planOf(['base+lora'], tinyModel('base'), tinyAdapter('lora', factors(up1, 4, 8)));
    const view = viewOf(plan, `${up1}.weight`);
    expect(view).toMatchObject({
      onBase: true,
      origin: { folder: 'base' },
      lowRank: {
        rank: 2,
        scale: 2,
        layout: 'linear',
        a: { folder: 'lora', shape: [2, 4] },
        b: { shape: [8, 2] },
      },
    });
    expect(view.origin).toBe(tensor(plan, `${up1}.weight`).base!.origin);
    // Read once: the base, and the factors.
    expect(plan.inputs.map((i) => i.folder)).toEqual(['base', 'lora']);
    expect(plan.inputs[1]!.readBytes).toBe(4 * (2 * 4 + 8 * 2));
  });

  it('on another checkpoint start from its weights', async () => {
    const plan = await planOf(
      ['tuned+lora'],
      tinyModel('base'),
      tinyModel('tuned'),
      tinyAdapter('lora', factors(up1, 4, 8)),
    );
    expect(viewOf(plan, `${up1}.weight`)).toMatchObject({
      onBase: false,
      origin: { folder: 'tuned' },
      lowRank: {},
    });
    expect(viewOf(plan, `${q0}.weight`)).toMatchObject({ onBase: false, origin: { folder: 'tuned' } });
  });

  it('R58: that claim more than they hold are refused: a series without an end, factors out of few numbers', async () => {
    const adapter = (config: object, tensors: Shapes) =>
      memoryFolder('made', {
        'adapter_config.json': config,
        'adapter_model.safetensors': safetensors(tensors),
      });
    const key = `base_model.model.${q0}`;
    const refusal = async (made: ModelFolder) =>
      (await planOf(['base+made'], tinyModel('base'), made)).problems;
    const oft = { peft_type: 'OFT', num_cayley_neumann_terms: 1e12 };
    expect(await refusal(adapter(oft, { [`${key}.oft_R`]: ['F32', [2, 1]] }))).toMatchObject([
      { code: 'AdapterUnsupported', message: expect.stringContaining('sums 1000000000000 terms') },
    ]);
    const many = adapter(
      { peft_type: 'FOURIERFT' },
      { [`${key}.fourierft_spectrum`]: ['F16', [2 ** 25 + 1]] },
    );
    expect(await refusal(many)).toMatchObject([
      { code: 'AdapterUnsupported', message: expect.stringContaining('makes factors of rank') },
    ]);
  });

  it('scale by α/r, by α/√r with rsLoRA, and by the patterns of a module', async () => {
    const shapes: Shapes = { ...factors(q0, 4, 4), ...factors(up1, 4, 8) };
    shapes[`base_model.model.${up1}.lora_A.weight`] = ['F32', [1, 4]];
    shapes[`base_model.model.${up1}.lora_B.weight`] = ['F32', [8, 1]];
    const config = {
      use_rslora: true,
      rank_pattern: { 'layers.1.mlp.up_proj': 1 },
      alpha_pattern: { up_proj: 10 },
    };
    const plan = await planOf(['base+lora'], tinyModel('base'), tinyAdapter('lora', shapes, config));
    expect(viewOf(plan, `${q0}.weight`).lowRank!.scale).toBeCloseTo(4 / Math.sqrt(2), 15);
    expect(viewOf(plan, `${up1}.weight`).lowRank).toMatchObject({ rank: 1, scale: 10 });
  });

  it('replace saved modules and trained biases, in the dtype of the base', async () => {
    const shapes: Shapes = {
      ...factors(q0, 4, 4),
      'base_model.model.model.norm.weight': ['F32', [4]],
      [`base_model.model.${q0}.bias`]: ['F32', [4]],
    };
    const base = tinyModel('base', { dtype: 'BF16', tensors: { [`${q0}.bias`]: ['BF16', [4]] } });
    const adapter = tinyAdapter('lora', shapes, { modules_to_save: ['model.norm'], bias: 'lora_only' });
    const plan = await planOf(['base+lora'], base, adapter);
    expect(errors(plan)).toEqual([]);
    for (const name of ['model.norm.weight', `${q0}.bias`]) {
      expect(viewOf(plan, name)).toMatchObject({ onBase: false, origin: { folder: 'lora', dtype: 'F32' } });
      expect(tensor(plan, name).dtype).toBe('BF16');
    }
  });

  it('add their scaled bias to the bias of the base', async () => {
    const shapes: Shapes = { ...factors(q0, 4, 4), [`base_model.model.${q0}.lora_B.bias`]: ['F32', [4]] };
    const base = tinyModel('base', { tensors: { [`${q0}.bias`]: ['F32', [4]] } });
    const plan = await planOf(['base+lora'], base, tinyAdapter('lora', shapes, { lora_bias: true }));
    expect(viewOf(plan, `${q0}.bias`)).toMatchObject({
      onBase: true,
      addend: { scale: 2, tensor: { folder: 'lora' } },
    });
    expect(tensor(plan, `${q0}.bias`)).not.toHaveProperty('copy');
  });

  it('with biases for modules that have none are refused with the step that helps', async () => {
    const shapes: Shapes = { ...factors(q0, 4, 4), [`base_model.model.${q0}.lora_B.bias`]: ['F32', [4]] };
    const adapter = tinyAdapter('lora', shapes, { lora_bias: true });
    const { problems } = await planOf(['base+lora'], tinyModel('base'), adapter);
    expect(problems).toEqual([
      expect.objectContaining({
        code: 'AdapterModuleMissing',
        message: expect.stringContaining('adds biases (lora_bias) where base has none'),
        remedy: expect.stringContaining('train it without lora_bias'),
      }),
    ]);
  });

  it.each([
    [{ target_modules: ['q_proj', 'up_proj'] }, undefined],
    [{ target_modules: ['self_attn.q_proj'] }, up1],
    [{ target_modules: '.*(q|up)_proj' }, undefined],
    [{ target_modules: 'all-linear' }, undefined],
    [{ target_modules: '.*\\.q_proj' }, up1],
    // the whole path, not its end
    [{ target_modules: `up_proj|${q0.replaceAll('.', '\\.')}` }, up1],
    [{ target_modules: ['q_proj', 'up_proj'], exclude_modules: ['self_attn.q_proj'] }, q0],
    [{ target_modules: '.*_proj', exclude_modules: '.*mlp.*' }, up1],
    [{ target_modules: null, layers_to_transform: [0] }, up1],
    [{ target_modules: ['q_proj', 'up_proj'], layers_to_transform: [0, 1] }, undefined],
    [{ target_modules: ['q_proj', 'up_proj'], layers_to_transform: 1 }, q0],
  ])('of other modules than their config names are said: %o', async (config, beyond) => {
    const adapter = tinyAdapter('lora', { ...factors(q0, 4, 4), ...factors(up1, 4, 8) }, config);
    const { problems } = await planOf(['base+lora'], tinyModel('base'), adapter);
    expect(problems.filter(({ code }) => code === 'AdapterTargetsDiffer').map((p) => p.message)).toEqual(
      beyond === undefined
        ? []
        : [expect.stringMatching(`layers_to_transform\\): ${beyond}\\. They are merged`)],
    );
  });

  it('update the embedding they were trained on, transposed; a tied head stays as it was there', async () => {
    const module = 'base_model.model.model.embed_tokens';
    const shapes: Shapes = {
      [`${module}.lora_embedding_A`]: ['F32', [2, 8]],
      [`${module}.lora_embedding_B`]: ['F32', [4, 2]],
      [`${module}.base_layer.weight`]: ['F32', [8, 4]],
    };
    const plan = await planOf(['base+lora'], tinyModel('base'), tinyAdapter('lora', shapes));
    expect(errors(plan)).toEqual([]);
    const origin = { folder: 'lora', key: `${module}.base_layer.weight` };
    expect(viewOf(plan, 'model.embed_tokens.weight')).toMatchObject({
      onBase: false,
      origin,
      lowRank: { layout: 'transposed', rank: 2 },
    });
    const head = viewOf(plan, 'lm_head.weight');
    expect(head).toMatchObject({ origin });
    expect(head.lowRank).toBeUndefined();
    expect(plan.problems.find(({ code }) => code === 'TiedEndsAdapted')!.message).toMatch(
      /so it is not tied/,
    );
  });

  it('keep a head tied where the config says so', async () => {
    const shapes: Shapes = { 'base_model.model.model.embed_tokens.weight': ['F32', [8, 4]] };
    const adapter = (more: object) =>
      tinyAdapter('lora', shapes, { modules_to_save: ['embed_tokens'], ...more });
    const head = async (more: object) =>
      tensor(await planOf(['base+lora'], tinyModel('base'), adapter(more)), 'lm_head.weight');
    expect((await head({})).copy).toMatchObject({ folder: 'base', key: 'model.embed_tokens.weight' });
    expect(await head({ ensure_weight_tying: true })).toBeUndefined();
  });

  it('name what they carry in vain', async () => {
    const shapes: Shapes = {
      ...factors(q0, 4, 4),
      [`base_model.model.${q0}.original_module.weight`]: ['F32', [4, 4]],
    };
    const adapter = tinyAdapter('lora', shapes, { lora_scaling_trick: 2 });
    const { problems } = await planOf(['base+lora'], tinyModel('base'), adapter);
    expect(problems.map(({ severity, code }) => [severity, code])).toEqual([
      ['warning', 'AdapterFieldsUnknown'],
      ['note', 'AdapterKeysUnused'],
    ]);
  });

  it('carry the magnitude of DoRA', async () => {
    const shapes: Shapes = {
      ...factors(up1, 4, 8),
      [`base_model.model.${up1}.lora_magnitude_vector`]: ['F32', [8]],
    };
    const plan = await planOf(
      ['base+lora'],
      tinyModel('base'),
      tinyAdapter('lora', shapes, { use_dora: true }),
    );
    expect(viewOf(plan, `${up1}.weight`).lowRank!.magnitude).toMatchObject({ folder: 'lora', shape: [8] });
  });
});

describe('the layout of a stored weight', () => {
  const targets: Shapes = {
    ...factors('transformer.h.0.attn.c_attn', 4, 12),
    ...factors('transformer.h.0.attn.c_proj', 4, 4),
  };

  it('is [in, out] for the Conv1D of GPT-2, also where it is square and the adapter does not say so', async () => {
    for (const fan_in_fan_out of [true, false]) {
      const plan = await planOf(
        ['base+lora'],
        gpt2('base'),
        tinyAdapter('lora', targets, { fan_in_fan_out }),
      );
      expect(errors(plan)).toEqual([]);
      expect(viewOf(plan, 'h.0.attn.c_attn.weight').lowRank!.layout).toBe('transposed');
      expect(viewOf(plan, 'h.0.attn.c_proj.weight').lowRank!.layout).toBe('transposed');
      expect(plan.problems.map((p) => p.code)).toEqual(fan_in_fan_out ? [] : ['FanInFanOut']);
    }
  });

  it('is [out, in] for a linear layer, whatever the adapter says', async () => {
    const adapter = tinyAdapter('lora', factors(q0, 4, 4), { fan_in_fan_out: true });
    const plan = await planOf(['base+lora'], tinyModel('base'), adapter);
    expect(viewOf(plan, `${q0}.weight`).lowRank!.layout).toBe('linear');
    expect(plan.problems.map((p) => p.code)).toEqual(['FanInFanOut']);
  });

  it('follows the adapter for a square weight of an unknown family', async () => {
    const module = 'h.0.mlp.c_fc';
    for (const fan_in_fan_out of [true, false]) {
      const adapter = tinyAdapter('lora', factors(module, 4, 4), { fan_in_fan_out });
      const plan = await planOf(['base+lora'], gpt2('base', { model_type: 'new' }), adapter);
      expect(viewOf(plan, `${module}.weight`).lowRank!.layout).toBe(fan_in_fan_out ? 'transposed' : 'linear');
    }
  });

  it('of DoRA on [in, out] weights takes a reading of all rows first', async () => {
    const shapes: Shapes = {
      ...factors('h.0.attn.c_attn', 4, 12),
      'base_model.model.h.0.attn.c_attn.lora_magnitude_vector': ['F32', [12]],
    };
    const adapter = tinyAdapter('lora', shapes, { use_dora: true, fan_in_fan_out: true });
    const plan = await planOf(['base+lora'], gpt2('base'), adapter);
    expect(errors(plan)).toEqual([]);
    const { origin, lowRank } = viewOf(plan, 'h.0.attn.c_attn.weight');
    expect(lowRank).toBeUndefined();
    expect(origin.derived!.from.map(({ folder }) => folder)).toEqual(['base', 'lora', 'lora', 'lora']);
  });
});

describe('another spelling of the base’s names', () => {
  const shapes = { 'language_model.model.layers.0.self_attn.q_proj.weight': ['F32', [4, 4]] } as Shapes;
  const wrapped = memoryFolder('base', {
    'config.json': { model_type: 'gemma3', text_config: { hidden_size: 4 } },
    'model.safetensors': safetensors({
      ...shapes,
      'vision_tower.encoder.layers.0.fc1.weight': ['F32', [4, 4]],
      'language_model.model.norm.weight': ['F32', [4]],
    }),
    'tokenizer.json': '{"model":{"vocab":{}}}',
  });

  it('of a multimodal model in memory is found in its checkpoint', async () => {
    const adapter = tinyAdapter('lora', {
      ...factors('model.language_model.layers.0.self_attn.q_proj', 4, 4),
      ...factors('model.vision_tower.encoder.layers.0.fc1', 4, 4),
    });
    const plan = await planOf(['base+lora'], wrapped, adapter);
    expect(errors(plan)).toEqual([]);
    expect(viewOf(plan, Object.keys(shapes)[0]!).lowRank).toBeDefined();
    expect(viewOf(plan, 'vision_tower.encoder.layers.0.fc1.weight').lowRank).toBeDefined();
  });

  it('of two checkpoints pairs their tensors under the names of the base', async () => {
    const bert = (path: string, prefix: string) =>
      memoryFolder(path, {
        'config.json': { model_type: 'bert' },
        'model.safetensors': safetensors({
          [`${prefix}embeddings.word_embeddings.weight`]: ['F32', [8, 4]],
          [`${prefix}encoder.layer.0.output.dense.weight`]: ['F32', [4, 4]],
        }),
        'tokenizer.json': '{"model":{"vocab":{}}}',
      });
    const plan = await planOf(['tuned'], bert('base', ''), bert('tuned', 'bert.'));
    expect(errors(plan)).toEqual([]);
    expect(viewOf(plan, 'encoder.layer.0.output.dense.weight').origin.folder).toBe('tuned');
  });
});
