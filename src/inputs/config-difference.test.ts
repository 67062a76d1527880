import { expect, test } from 'vitest';
import { parseModelConfig } from '../formats/model-config';
import { compareConfigs } from './config-difference';

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

test('the same, and none', () => {
  expect(compareConfigs(config(llama), config(llama)).words).toEqual(['Both configs say the same.']);
  expect(compareConfigs(config(llama), undefined).words).toEqual([
    'The configs cannot be compared: the fine-tune has no config.json.',
  ]);
});
