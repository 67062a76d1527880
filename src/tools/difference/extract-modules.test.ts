import { describe, expect, test } from 'vitest';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import {
  base,
  changed,
  configOf,
  DOWN,
  EMBEDDING,
  everything,
  extract,
  FINAL,
  HEAD,
  K,
  keys,
  layer,
  left,
  type Model,
  NORM,
  Q,
  settings,
} from '../lora/extract.test.support';
import { CONFIG, lowRankDelta, modelFolder, random, weightFile } from './compare.test.support';

describe('modules', () => {
  test('include and exclude choose by parts of the path; what is left out is said', async () => {
    const lora = await extract(
      base,
      changed(everything),
      settings({ include: ['self_attn', 'mlp'], exclude: ['k_proj'] }),
    );
    expect(lora.report.modules.map(({ module }) => module)).toEqual([
      'model.layers.0.mlp.down_proj',
      'model.layers.0.self_attn.q_proj',
    ]);
    expect(left(lora)[K]).toBe('its module is left out on request');
    expect(lora.report.left.find(({ name }) => name === K)!.normDelta).toBeGreaterThan(0);
    expect(lora.report.merged.error).toBeGreaterThan(0.1);
  });

  test('a target is named by its path where another module of that name does not change', async () => {
    const two = (model: Model): Model => ({
      ...model,
      'model.layers.1.self_attn.q_proj.weight': random([24, 24], 0.1, 20),
    });
    const lora = await extract(two(base), two(changed({ [Q]: everything[Q]!, [K]: everything[K]! })));
    expect(configOf(lora).target_modules).toEqual(['k_proj', 'model.layers.0.self_attn.q_proj']);
  });

  test('embeddings and heads as factors', async () => {
    const tuned = changed({ ...everything, [HEAD]: lowRankDelta([40, 24], 2, 0.01, 21) });
    const lora = await extract(base, tuned, settings({ embeddings: 'lora', vectors: 'skip' }));
    expect(keys(lora)).toContain('model.embed_tokens.lora_embedding_A [24,40]');
    expect(keys(lora)).toContain('model.embed_tokens.lora_embedding_B [24,24]');
    expect(keys(lora)).toContain('lm_head.lora_A.weight [24,24]');
    expect(configOf(lora)).toMatchObject({ modules_to_save: null, fan_in_fan_out: false });
    expect(left(lora)).toEqual({
      [NORM]: 'vectors are left out on request',
      [FINAL]: 'vectors are left out on request',
    });
    for (const { error } of lora.report.modules) expect(error).toBeLessThan(1e-5);
  });

  test('a tied embedding is carried with its head, so that PEFT loads both', async () => {
    const { [HEAD]: _, ...tied } = base;
    const config = { ...CONFIG, tie_word_embeddings: true };
    const lora = await extract(tied, changed(everything, tied), { config });
    expect(keys(lora)).toContain('lm_head.weight [40,24]');
    expect(configOf(lora).modules_to_save).toContain('lm_head');
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
    const factors = await extract(tied, changed(everything, tied), {
      config,
      ...settings({ embeddings: 'lora' }),
    });
    expect(factors.report.notes.join(' ')).toMatch(/The head is tied to the embedding/);
    expect(factors.report.merged.error).toBeLessThan(1e-5);
  });

  test('a head of its own over a tied base is carried whole', async () => {
    const { [HEAD]: _, ...tied } = base;
    const own = { ...changed({ [Q]: everything[Q]! }, tied), [HEAD]: random([40, 24], 0.1, 22) };
    const tuned = modelFolder('tuned', own);
    const lora = await extract(modelFolder('base', tied, { ...CONFIG, tie_word_embeddings: true }), tuned);
    expect(keys(lora)).toContain('lm_head.weight [40,24]');
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
  });

  test('a resized embedding is carried whole, with the remark that the base must be resized', async () => {
    const larger = { ...changed({ [Q]: everything[Q]! }), [EMBEDDING]: random([44, 24], 0.1, 23) };
    const lora = await extract(base, larger);
    expect(keys(lora)).toContain('model.embed_tokens.weight [44,24]');
    expect(lora.report.notes.join(' ')).toMatch(/40 rows in the base and 44 in the fine-tune/);
  });

  test('a fine-tune that is an adapter itself: its norm and embedding are computed and carried', async () => {
    const adapter = memoryFolder('lora', {
      'adapter_config.json': { peft_type: 'LORA', r: 2, lora_alpha: 2, target_modules: [] },
      'adapter_model.safetensors': weightFile({
        'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight': random([2, 24], 0.1, 30),
        'base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight': random([24, 2], 0.1, 31),
        'base_model.model.model.embed_tokens.lora_embedding_A': random([2, 40], 0.1, 32),
        'base_model.model.model.embed_tokens.lora_embedding_B': random([24, 2], 0.1, 33),
      }),
    });
    const lora = await extract(
      base,
      base,
      { rank: { kind: 'cutoff', ratio: 1e-4 } },
      ['base', 'base+lora'],
      [adapter],
    );
    expect(lora.report.modules).toMatchObject([{ module: 'model.layers.0.self_attn.q_proj', rank: 2 }]);
    expect(lora.report.saved).toMatchObject([{ name: 'base_model.model.model.embed_tokens.weight' }]);
    expect(lora.report.merged.error).toBeLessThan(1e-5);
  });
});

describe('GPT-2: Conv1D stores [in, out], and the bare model has no prefix', () => {
  const gpt2: Model = {
    'wte.weight': random([40, 24], 0.1, 1),
    'h.0.attn.c_attn.weight': random([24, 72], 0.1, 2),
    'h.0.attn.c_attn.bias': random([72], 0.1, 3),
    'h.0.attn.c_proj.weight': random([24, 24], 0.1, 4),
    'h.0.attn.c_proj.bias': random([24], 0.1, 5),
    'h.0.ln_1.weight': random([24], 1, 6),
    'h.0.ln_1.bias': random([24], 0.1, 7),
  };
  const config = { model_type: 'gpt2', n_layer: 1, n_embd: 24, vocab_size: 40 };
  const changes = {
    'h.0.attn.c_attn.weight': lowRankDelta([24, 72], 2, 0.01, 11),
    'h.0.attn.c_attn.bias': random([72], 0.01, 12),
    'h.0.attn.c_proj.weight': lowRankDelta([24, 24], 2, 0.01, 13),
    'h.0.ln_1.bias': random([24], 0.01, 14),
  };

  test('factors are transposed, fan_in_fan_out set, biases go to lora_B, a norm goes with both its tensors', async () => {
    const lora = await extract(gpt2, changed(changes, gpt2), { config, rank: { kind: 'rank', rank: 2 } });
    expect(keys(lora)).toEqual([
      'transformer.h.0.attn.c_attn.lora_A.weight [2,24]',
      'transformer.h.0.attn.c_attn.lora_B.bias [72]',
      'transformer.h.0.attn.c_attn.lora_B.weight [72,2]',
      'transformer.h.0.attn.c_proj.lora_A.weight [2,24]',
      'transformer.h.0.attn.c_proj.lora_B.bias [24]',
      'transformer.h.0.attn.c_proj.lora_B.weight [24,2]',
      'transformer.h.0.ln_1.bias [24]',
      'transformer.h.0.ln_1.weight [24]',
    ]);
    expect(configOf(lora)).toMatchObject({
      fan_in_fan_out: true,
      lora_bias: true,
      modules_to_save: ['transformer.h.0.ln_1'],
    });
    expect(lora.report.left).toEqual([]);
    expect(lora.report.merged.error).toBeLessThan(1e-5);
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
  });
});

describe('biases that PEFT cannot load', () => {
  const qwen: Model = { ...base, [layer('self_attn.q_proj.bias')]: random([24], 0.1, 40) };
  const changes = {
    [Q]: everything[Q]!,
    [DOWN]: everything[DOWN]!,
    [layer('self_attn.q_proj.bias')]: random([24], 0.01, 41),
  };

  test('some targets have one and others not: its change is left, with its norm', async () => {
    const lora = await extract(qwen, changed(changes, qwen));
    expect(configOf(lora)).not.toHaveProperty('lora_bias');
    expect(lora.report.left).toMatchObject([
      {
        name: layer('self_attn.q_proj.bias'),
        why: 'PEFT takes biases of lora_B only when every target has a bias',
      },
    ]);
    const { values } = changes[layer('self_attn.q_proj.bias')]!;
    expect(lora.report.left[0]!.normDelta).toBeCloseTo(Math.hypot(...values), 5);
  });

  test('every target has one', async () => {
    const { [DOWN]: _, ...only } = changes;
    const lora = await extract(qwen, changed(only, qwen));
    expect(configOf(lora)).toHaveProperty('lora_bias', true);
    expect(lora.report.left).toEqual([]);
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
  });
});
