import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildShardIndex, MAX_SHARDS, parseShardIndex } from './shard-index';

const NAME = 'model.safetensors.index.json';
function parse(text: string) {
  return parseShardIndex(text, NAME);
}
function one(file: string): string {
  return JSON.stringify({ metadata: {}, weight_map: { a: file } });
}
function refusal(code: string): unknown {
  return expect.objectContaining({ code });
}

test('an index as transformers and mergekit write it', () => {
  const index = parse(`{
  "metadata": {"mergekit_version": "0.1.4", "total_size": 16060522496},
  "weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors", "__proto__": "model-00002-of-00002.safetensors"}
}`);
  expect([...index]).toEqual([
    ['lm_head.weight', 'model-00001-of-00002.safetensors'],
    ['__proto__', 'model-00002-of-00002.safetensors'],
  ]);
});

test.each(['', '"metadata":null,', '"metadata":{"total_size":1.6e10},', '"metadata":[],"more":[{}],'])(
  'what is beside the map is of no matter: %s',
  (beside) => {
    expect([...parse(`{${beside}"weight_map":{"a":"m.safetensors"}}`)]).toEqual([['a', 'm.safetensors']]);
  },
);

describe('R13 R14: refused', () => {
  test.each([
    '../x.safetensors',
    '/x.safetensors',
    'C:\\x.safetensors',
    '\\\\host\\x.safetensors',
    'a/../../x.safetensors',
    'https://example.org/x.safetensors',
    '%2e%2e/x.safetensors',
    '',
    'NUL',
    'NUL.safetensors',
    'a\0.safetensors',
  ])('the file name %j', (file) => {
    expect(() => parse(one(file))).toThrow(refusal('UnsafePath'));
  });

  test.each([
    ['no JSON', '{', 'JsonInvalid'],
    ['a list', '[]', 'IndexInvalid'],
    ['no weight_map', '{"metadata":{}}', 'IndexInvalid'],
    ['an empty weight_map', '{"weight_map":{}}', 'IndexInvalid'],
    ['a weight_map that is a list', '{"weight_map":[]}', 'IndexInvalid'],
    ['a file that is a number', '{"weight_map":{"a":1}}', 'IndexInvalid'],
    ['a tensor listed twice', '{"weight_map":{"a":"m.safetensors","a":"n.safetensors"}}', 'DuplicateKey'],
    ['a pickle', one('pytorch_model-00001-of-00002.bin'), 'NotSafetensors'],
    ['a reserved name', '{"weight_map":{"__metadata__":"m.safetensors"}}', 'UnsafeName'],
    ['a token of 100 001 characters', `{"weight_map":{"${'x'.repeat(100_001)}":"m"}}`, 'LimitExceeded'],
    ['65 levels', `{"x":${'['.repeat(64)}`, 'JsonInvalid'],
  ])('%s', (_, text, code) => {
    expect(() => parse(text)).toThrow(refusal(code));
  });

  test('R13: more than 10 000 shards', () => {
    const index = (shards: number) =>
      buildShardIndex(
        Array.from({ length: shards }, (_, i) => [`t${i}`, `m${i}.safetensors`] as const),
        0,
      );
    expect(parse(index(MAX_SHARDS)).size).toBe(MAX_SHARDS);
    expect(() => parse(index(MAX_SHARDS + 1))).toThrow(refusal('LimitExceeded'));
  });
});

test('R13: as many tensors as are taken (30 MB) are read', () => {
  const filler = 'x'.repeat(60);
  const entries = Array.from(
    { length: 250_000 },
    (_, i) => [`model.layers.${i}.${filler}.weight`, `model-${i % 60}.safetensors`] as const,
  );
  const text = buildShardIndex(entries, 1);
  expect(text.length).toBeGreaterThan(2.5e7);
  expect(parse(text).size).toBe(250_000);
});

test('what is written is read back, sorted, and is what JSON.stringify would print', () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 10 }).filter((s) => !s.includes('\0'));
  fc.assert(
    fc.property(fc.uniqueArray(name, { minLength: 1 }), fc.maxSafeNat(), (names, totalSize) => {
      const entries = names.map((n, i) => [n, `model-${i}.safetensors`] as const);
      const text = buildShardIndex(entries, totalSize);
      const index = parse(text);
      expect(JSON.parse(text).metadata).toEqual({ total_size: totalSize });
      expect(new Map(entries)).toEqual(index);
      expect(JSON.stringify(JSON.parse(text), null, 2).length + 1).toBe(text.length);
    }),
  );
});
