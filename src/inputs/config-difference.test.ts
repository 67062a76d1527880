import { expect, test } from 'vitest';
import { parseModelConfig } from '../formats/model-config';
import { compareConfigs, computedOtherwise } from './config-difference';

const config = (fields: object) => parseModelConfig(JSON.stringify(fields), 'config.json');
const llama = { model_type: 'llama', hidden_size: 64, rms_norm_eps: 1e-5 };

test('the old and the new spelling of the same settings are no difference that matters', () => {
  const { differences, words } = compareConfigs(
    config({ ...llama, rope_theta: 10000, torch_dtype: 'bfloat16', _name_or_path: 'x' }),
    config({ ...llama, rope_parameters: { rope_theta: 10000, rope_type: 'default' }, dtype: 'bfloat16' }),
  );
  expect(differences.every(({ harmless }) => harmless)).toBe(true);
  expect(words).toEqual([
    'The differences of the configs do not change what the model computes: _name_or_path, dtype, rope_parameters.rope_theta, rope_parameters.rope_type, rope_theta, torch_dtype.',
  ]);
});

test('another value in another spelling matters', () => {
  const { differences } = compareConfigs(
    config({ ...llama, rope_theta: 10000 }),
    config({ ...llama, rope_parameters: { rope_theta: 500000, rope_type: 'llama3', factor: 8 } }),
  );
  expect(differences.filter(({ harmless }) => !harmless).map(({ field }) => field)).toEqual([
    'rope_parameters.factor',
    'rope_parameters.rope_theta',
    'rope_parameters.rope_type',
    'rope_theta',
  ]);
});

/** A model that can be run. */
const whole = {
  model_type: 'llama',
  hidden_size: 16,
  intermediate_size: 32,
  num_hidden_layers: 1,
  num_attention_heads: 4,
  vocab_size: 24,
};

test('fields that differ are named with both values, whatever is in them', () => {
  const { words } = compareConfigs(
    config({ ...llama, vocab_size: 512, sliding_window: null, old: [1, { a: true }] }),
    config({ ...llama, vocab_size: 520, rms_norm_eps: 0.00001, 'x\u202e': 'y' }),
  );
  expect(words).toEqual([
    'Only the base\'s config has “old”: [1, {"a": true}].',
    "The config's “vocab_size” is 512 in the base and 520 in the fine-tune.",
    'Only the fine-tune\'s config has “x\\u{202e}”: "y".',
  ]);
});

test('an absent field is no difference where the other has the default of the family', () => {
  const said = (base: object, other: object) =>
    compareConfigs(config({ ...whole, ...base }), config({ ...whole, ...other })).differences.map(
      ({ field, harmless }) => `${field} ${harmless}`,
    );
  expect(said({}, { rope_theta: 10000, rms_norm_eps: 1e-6 })).toEqual([
    'rms_norm_eps true',
    'rope_theta true',
  ]);
  expect(said({ attention_bias: false }, {})).toEqual(['attention_bias true']);
  expect(said({}, { rope_theta: 500000 })).toEqual(['rope_theta false']);
  expect(said({ rms_norm_eps: 1e-5 }, {})).toEqual(['rms_norm_eps false']);
  expect(said({}, { attention_dropout: 0.5 })).toEqual(['attention_dropout true']);
});

const moe = { ...whole, moe_intermediate_size: 32, num_experts: 4, num_local_experts: 4 };
const t5 = { model_type: 't5', d_model: 16, num_layers: 1, num_heads: 4 };
const mystery = { ...whole, model_type: 'mystery' };

test.each([
  [
    'a switch with its numbers',
    { ...whole, model_type: 'qwen2' },
    { use_sliding_window: true, max_window_layers: 0 },
  ],
  [
    'chosen experts (2)',
    { ...moe, model_type: 'mixtral' },
    { num_experts_per_tok: 1 },
    { num_experts_per_tok: 2 },
  ],
  [
    'chosen experts (4)',
    { ...moe, model_type: 'qwen2_moe', shared_expert_intermediate_size: 8 },
    { num_experts_per_tok: 2 },
    { num_experts_per_tok: 4 },
  ],
  [
    'chosen experts (8)',
    { ...moe, model_type: 'qwen3_moe' },
    { num_experts_per_tok: 4 },
    { num_experts_per_tok: 8 },
  ],
  [
    'a field that its type needs',
    { ...moe, model_type: 'lfm2_moe', num_dense_layers: 0 },
    { num_experts_per_tok: 4 },
  ],
  [
    'an encoder-decoder',
    t5,
    { relative_attention_max_distance: 64 },
    { relative_attention_max_distance: 128 },
  ],
  ['its norms', t5, { layer_norm_epsilon: 1e-3 }, { layer_norm_epsilon: 1e-6 }],
  ['its feed forward', t5, { feed_forward_proj: 'gated-gelu' }, { feed_forward_proj: 'relu' }],
  [
    'the same of its relative',
    { ...t5, model_type: 'mt5' },
    { feed_forward_proj: 'relu' },
    { feed_forward_proj: 'gated-gelu' },
  ],
  [
    'scaled embeddings',
    { ...t5, model_type: 'm2m_100' },
    { scale_embedding: false },
    { scale_embedding: true },
  ],
  ['a type that nobody knows', mystery, { rms_norm_eps: 1e-5 }],
  ['its activation', mystery, { hidden_act: 'gelu' }],
])('%s: absent in one model, whichever comes first', (_, base, other, orElse?: object) => {
  const [without, unlike] = [config(base), config({ ...base, ...other })];
  const named = (words: string[]) => words.map((said) => said.split(' ')[0]);
  const said = named(computedOtherwise(without, unlike));
  expect(said).toContain(Object.keys(other)[0]);
  expect(named(computedOtherwise(unlike, without))).toEqual(said);
  if (orElse) expect(computedOtherwise(without, config({ ...base, ...orElse }))).toEqual([]);
});

test('rows of a classifier that stand for other labels are named, and no labels without a name', () => {
  const labels = (...names: string[]) =>
    config({ ...whole, id2label: Object.fromEntries(names.map((name, i) => [i, name])) });
  const said = (a: string[], b: string[]) => computedOtherwise(labels(...a), labels(...b));
  expect(said(['NEG', 'POS'], ['POS', 'NEG'])).toEqual([
    'id2label {"0": "POS", "1": "NEG"} instead of {"0": "NEG", "1": "POS"}',
  ]);
  expect(said(['NEG', 'POS'], ['NEG', 'POS'])).toEqual([]);
  expect(said(['NEG', 'POS'], ['LABEL_0', 'LABEL_1'])).toEqual([]);
});

test('the same, and none', () => {
  expect(compareConfigs(config(llama), config(llama)).words).toEqual(['Both configs say the same.']);
  expect(compareConfigs(config(llama), undefined).words).toEqual([
    'The configs cannot be compared: the fine-tune has no config.json.',
  ]);
});
