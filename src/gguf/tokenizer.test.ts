import { expect, test } from 'vitest';
import { ignoredNormalizer, tokenizerMetadata } from './tokenizer';

test('vocabularies of today: 262 144 tokens are more than a call takes arguments', () => {
  const rows = 262_144;
  const tokenizer = JSON.stringify({
    added_tokens: [],
    model: {
      type: 'BPE',
      byte_fallback: true,
      vocab: Object.fromEntries(Array.from({ length: rows }, (_, id) => [`t${id}`, id])),
      merges: [],
    },
  });
  const metadata = new Map(tokenizerMetadata({ tokenizer }, rows, new Map()));
  const tokens = metadata.get('tokenizer.ggml.tokens') as { values: readonly string[] };
  expect(tokens.values).toHaveLength(rows);
  expect(tokens.values.at(-1)).toBe('t262143');
  expect(() => tokenizerMetadata({ tokenizer }, rows - 1, new Map())).toThrow(
    expect.objectContaining({ message: expect.stringContaining('ids up to 262143') }),
  );
});

test('what changes a text ahead of its splitting is named, or refused where it changes most texts', () => {
  const said = (normalizer: unknown, byteFallback = false) =>
    ignoredNormalizer({
      tokenizer: JSON.stringify({
        ...{ normalizer, added_tokens: [] },
        model: { type: 'BPE', byte_fallback: byteFallback, vocab: { a: 0 }, merges: [] },
      }),
    });
  const spaces = [{ type: 'Prepend' }, { type: 'Replace' }];
  expect(said(null)).toBeUndefined();
  expect(said({ type: 'Sequence', normalizers: spaces }, true)).toBeUndefined();
  expect(said({ type: 'NFC' })!.message).toContain('the form NFC first');
  expect(() => said({ type: 'Lowercase' })).toThrow(expect.objectContaining({ code: 'GgufUnsupported' }));
});
