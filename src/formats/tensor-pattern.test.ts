import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isGlob, matchesTensor } from './tensor-pattern';

describe('matchesTensor', () => {
  test.each<[string, string, boolean]>([
    // mergekit's own meaning: a substring, and * for all
    ['*', 'lm_head.weight', true],
    ['mlp', 'model.layers.3.mlp.up_proj.weight', true],
    ['self_attn', 'model.layers.3.mlp.up_proj.weight', false],
    ['layers.1.', 'model.layers.1.mlp.up_proj.weight', true],
    ['layers.1.', 'model.layers.11.mlp.up_proj.weight', false],
    ['model.norm.weight', 'model.norm.weight', true],
    ['q_proj.weight$', 'model.layers.0.self_attn.q_proj.weight', false],
    // globs hold for the whole name
    ['*.q_proj.weight', 'model.layers.0.self_attn.q_proj.weight', true],
    ['*.q_proj.weight', 'model.layers.0.self_attn.q_proj.bias', false],
    ['q_proj*', 'model.layers.0.self_attn.q_proj.weight', false],
    ['model.layers.1?.*', 'model.layers.12.mlp.up_proj.weight', true],
    ['model.layers.1?.*', 'model.layers.1.mlp.up_proj.weight', false],
    ['model.layers.1?.*', 'model.layers.102.mlp.up_proj.weight', false],
    ['**norm**', 'model.norm.weight', true],
    ['?', 'ab', false],
  ])('%s on %s: %s', (pattern, name, expected) => {
    expect(matchesTensor(pattern, name)).toBe(expected);
  });

  test('globs agree with the regular expression they stand for', () => {
    const piece = fc.array(fc.constantFrom('a', 'b', '.', '*', '?'), { maxLength: 8 }).map((c) => c.join(''));
    const name = fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 10 }).map((c) => c.join(''));
    fc.assert(
      fc.property(piece.filter(isGlob), name, (pattern, text) => {
        const source = pattern.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.');
        expect(matchesTensor(pattern, text)).toBe(new RegExp(`^${source}$`).test(text));
      }),
      { numRuns: 500 },
    );
  });

  test('a pattern made to be slow is not', () => {
    expect(matchesTensor(`${'*a'.repeat(200)}*b`, 'a'.repeat(5000))).toBe(false);
  });
});
