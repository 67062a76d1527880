import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { goldenFolder } from '../../e2e/goldens';
import { parseModelConfig } from '../formats/model-config';
import { restack } from './depth';

const of = (config: object, order: readonly number[]) => {
  const result = restack(parseModelConfig(JSON.stringify(config), 'config.json'), order);
  return { ...result, json: JSON.parse(result.text) as Record<string, unknown> };
};
const FOLDERS = { forward: goldenFolder('forward'), forward2: goldenFolder('forward2') };
const fixture = (name: string): Record<string, unknown> => {
  const [set, family] = name.split('/') as [keyof typeof FOLDERS, string];
  return JSON.parse(readFileSync(`${FOLDERS[set]}/${family}/config.json`, 'utf8'));
};

it.each([
  // type, fields, order → fields of the output
  ['deepseek_v3', { first_k_dense_replace: 2 }, [0, 1, 2, 4], { first_k_dense_replace: 2 }],
  ['deepseek_v3', { first_k_dense_replace: 2 }, [0, 3, 4], { first_k_dense_replace: 1 }],
  ['glm4_moe', { first_k_dense_replace: 1 }, [0, 2, 3, 2, 3], { first_k_dense_replace: 1 }],
  ['lfm2_moe', { num_dense_layers: 2 }, [1, 2, 3], { num_dense_layers: 1 }],
  [
    'ernie4_5_moe',
    { moe_layer_start_index: 1, moe_layer_end_index: 3 },
    [0, 1, 3, 4],
    { moe_layer_start_index: 1, moe_layer_end_index: 2 },
  ],
  ['bamba', { attn_layer_indices: [1, 3] }, [0, 1, 2, 3, 2, 3], { attn_layer_indices: [1, 3, 5] }],
  ['llama4_text', { moe_layers: [1, 3] }, [0, 1, 1, 2], { moe_layers: [1, 2] }],
  ['recurrent_gemma', { block_types: ['r', 'r', 'a'] }, [0, 2, 3, 5], { block_types: ['r', 'a', 'r', 'a'] }],
  ['nemotron_h', { hybrid_override_pattern: 'M-*M-' }, [0, 2, 1], { hybrid_override_pattern: 'M*-' }],
  ['qwen2_moe', { mlp_only_layers: [0, 3] }, [0, 1, 3, 4], { mlp_only_layers: [0, 2] }],
  [
    'gemma4_text',
    { num_kv_shared_layers: 2, per_layer_config: { 1: { head_dim: 8 }, 3: { head_dim: 8 } } },
    [0, 1, 2, 4],
    { num_kv_shared_layers: 1, per_layer_config: { 1: { head_dim: 8 } } },
  ],
  [
    'gemma3n_text',
    { intermediate_size: [1, 2, 3, 4, 5], num_kv_shared_layers: 1 },
    [1, 3, 4],
    { intermediate_size: [2, 4, 5], num_kv_shared_layers: 1 },
  ],
] as const)('%s: %o in the order %o', (model_type, fields, order, wanted) => {
  const count = 'hybrid_override_pattern' in fields || 'intermediate_size' in fields ? 5 : 6;
  const { json, unsaid } = of(
    { model_type, num_hidden_layers: count === 5 || 'per_layer_config' in fields ? 5 : 6, ...fields },
    order,
  );
  expect(unsaid).toEqual([]);
  expect(json).toMatchObject({ ...wanted, num_hidden_layers: order.length });
});

it.each([
  ['deepseek_v3', { first_k_dense_replace: 2 }, [0, 2, 1], 'first_k_dense_replace'],
  ['ernie4_5_moe', { moe_layer_start_index: 1 }, [1, 0], 'moe_layer_start_index'],
  ['gemma4_text', { num_kv_shared_layers: 2 }, [4, 0, 1], 'num_kv_shared_layers'],
  [
    'jamba',
    { attn_layer_period: 4, attn_layer_offset: 1, expert_layer_period: 1 },
    [0, 2],
    'attn_layer_period',
  ],
  ['jamba', { attn_layer_period: 4, attn_layer_offset: 1 }, [1], 'attn_layer_period'],
  ['modernbert', {}, [0, 1, 2, 4], 'global_attn_every_n_layers'],
  ['qwen3_moe', { decoder_sparse_step: 2 }, [0, 2], 'decoder_sparse_step'],
  ['llama4_text', { interleave_moe_layer_step: 2 }, [1, 0], 'interleave_moe_layer_step'],
] as const)('%s: %o cannot be said of the order %o', (model_type, fields, order, field) => {
  expect(of({ model_type, num_hidden_layers: 6, ...fields }, order).unsaid).toContain(field);
});

it('what keeps its pattern is said as it was', () => {
  expect(of({ model_type: 'modernbert', num_hidden_layers: 9 }, [0, 1, 2, 6, 7, 8]).unsaid).toEqual([]);
  const jamba = {
    attn_layer_period: 4,
    attn_layer_offset: 1,
    expert_layer_period: 2,
    expert_layer_offset: 1,
  };
  const order = [0, 1, 2, 3, 0, 1, 2, 3];
  expect(of({ model_type: 'jamba', num_hidden_layers: 4, ...jamba }, order).unsaid).toEqual([]);
});

it('fields inside text_config are changed there', () => {
  const config = {
    model_type: 'llama4',
    text_config: { model_type: 'llama4_text', num_hidden_layers: 4, moe_layers: [1, 3] },
  };
  expect(of(config, [0, 1, 3]).json).toEqual({
    model_type: 'llama4',
    text_config: { model_type: 'llama4_text', num_hidden_layers: 3, moe_layers: [1, 2] },
  });
});

it('a model that runs is looked at block by block', () => {
  // dense, dense, experts …: the second layer would be dense
  const ernie = fixture('forward2/ernie4_5_moe');
  const layers = ernie.num_hidden_layers as number;
  const all = Array.from({ length: layers }, (_, i) => i);
  expect(of(ernie, all)).toMatchObject({ unsaid: [], misplaced: [], changed: [], known: true });
  // windows that follow from the index are written out
  const { layer_types: _, ...gemma2 } = fixture('forward/gemma2');
  const stacked = of(gemma2, [0, 0, 1]);
  expect(stacked.json.layer_types).toEqual(['sliding_attention', 'sliding_attention', 'full_attention']);
  expect(stacked).toMatchObject({ misplaced: [], changed: [] });
  // no field can set another index of scores
  expect(of(fixture('forward/gpt2_inv_layer'), [0, 2]).changed).toEqual([1]);
  // the token's shares for the layers are one tensor, which is not cut
  expect(of(fixture('forward2/gemma4_shared'), [0, 1, 4]).misplaced.length).toBeGreaterThan(0);
});

/** Families in which a layer knows its index, or how many there are, in a way that no config can express for restacked layers. */
const BOUND = new Set(['gpt2_inv_layer', 'minicpm3', 'gemma3n_shared', 'gemma4_shared']);

const families = Object.entries(FOLDERS).flatMap(([set, folder]) =>
  readdirSync(folder).map((name) => `${set}/${name}`),
);

// a family whose fields are missing in index-fields.ts has other tensors than its config describes
it.each(families)('%s: without one of its layers the others are what they were', (name) => {
  const config = fixture(name);
  const text = (config.text_config ?? config) as Record<string, unknown>;
  const count = Number(text.num_hidden_layers ?? text.n_layer ?? text.n_layers ?? text.num_layers);
  expect(count).toBeGreaterThan(1);
  const all = Array.from({ length: count }, (_, i) => i);
  const lost = all.filter((missing) => {
    const order = all.filter((i) => i !== missing);
    const { unsaid, misplaced, changed } = of(config, order);
    return unsaid.length + misplaced.length + changed.length > 0;
  });
  if (BOUND.has(name.slice(name.indexOf('/') + 1))) expect(lost).not.toEqual([]);
  else expect(lost).toEqual([]);
});

it('the number of an expert is not the index of its layer', () => {
  const deepseek = fixture('forward2/deepseek_v3');
  const order = Array.from({ length: deepseek.num_hidden_layers as number }, (_, i) => i);
  expect(order.length).toBeLessThan(deepseek.n_routed_experts as number);
  expect(
    of(
      deepseek,
      order.filter((i) => i !== 1),
    ).changed,
  ).toEqual([]);
});

it('a type that nobody knows is said to be unknown', () => {
  expect(of({ model_type: 'novel', num_hidden_layers: 4 }, [0, 2]).known).toBe(false);
});
