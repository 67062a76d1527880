import { expect, test } from 'vitest';
import { tokenizerMetadata } from './tokenizer';

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
