import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { type YamlData, yamlText } from './yaml-text';

const scalar = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    'no',
    'y',
    '1:30',
    '0o17',
    '~',
    '- a',
    'a: b',
    '#',
    'é',
    'a\u2028b',
    '',
    ' ',
    'x'.repeat(1100),
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.boolean(),
);
const data = fc.letrec<{ node: YamlData }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(tie('node'), { maxLength: 4 }),
    fc.array(fc.integer(), { maxLength: 4 }),
    // as a mapping has no key twice and `__proto__` is none of its own
    fc.dictionary(fc.oneof(fc.string(), fc.constant('k'.repeat(1100))), tie('node'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
})).node;

test('what is written is read back as it was', () => {
  fc.assert(
    fc.property(data, (value) => {
      expect(parse(yamlText(value))).toEqual(value);
    }),
  );
});

test('the form is that of recipes by hand', () => {
  const text = `merge_method: linear
models:
  - model: a
    parameters:
      weight: [0, 0.5]
      density:
        - filter: self_attn
          value: 1.0e-7
        - value: "no"
  - []
  - {}
  - - x
    - - true
      - "1"
`;
  const weights = { weight: [0, 0.5], density: [{ filter: 'self_attn', value: 1e-7 }, { value: 'no' }] };
  const models = [{ model: 'a', parameters: weights, revision: undefined }, [], {}, ['x', [true, '1']]];
  expect(yamlText({ merge_method: 'linear', models })).toBe(text);
});

test('a long key is marked as one', () => {
  const key = 'k'.repeat(1100);
  expect(yamlText(new Map([[key, { a: 1 }]]))).toBe(`? ${key}\n: a: 1\n`);
});
