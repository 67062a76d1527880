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

test('the same, and none', () => {
  expect(compareConfigs(config(llama), config(llama)).words).toEqual(['Both configs say the same.']);
  expect(compareConfigs(config(llama), undefined).words).toEqual([
    'The configs cannot be compared: the fine-tune has no config.json.',
  ]);
});
