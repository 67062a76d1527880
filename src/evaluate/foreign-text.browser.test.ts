import { expect, test } from 'vitest';
import { guardedTokenizer, renderGuarded } from './foreign-text';
import { createTokenizer } from './tokenizer';

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }];

/** A tokenizer that splits by an expression. */
function files(expression: string) {
  const tokenizer = {
    model: { type: 'BPE', vocab: { a: 0, b: 1, x: 2, '<unk>': 3 }, merges: [], unk_token: '<unk>' },
    normalizer: null,
    post_processor: null,
    decoder: null,
    pre_tokenizer: { type: 'Split', pattern: { Regex: expression }, behavior: 'Removed', invert: false },
    added_tokens: [],
  };
  return { tokenizer: JSON.stringify(tokenizer), hasSentencePiece: false };
}

test('R59: a template that does not end is stopped, and what comes after it works', async () => {
  const loop = '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}';
  await expect(renderGuarded({ template: loop, tokens: {} }, MESSAGES, 500)).rejects.toMatchObject({
    code: 'TokenizerInvalid',
    message: expect.stringContaining('did not come to an end'),
  });
  const template = '{{ bos }}{{ messages[0].content }}';
  expect(await renderGuarded({ template, tokens: { bos: '<s>' } }, MESSAGES)).toBe('<s>Hello');
  await expect(renderGuarded({ template: '{% for %}', tokens: {} }, MESSAGES)).rejects.toMatchObject({
    code: 'TokenizerInvalid',
    message: expect.stringContaining('does not render'),
  });
});

test('R59: an expression that backtracks is stopped; a sound one gives the same ids in its thread', async () => {
  const slow = guardedTokenizer(files('(x+x+)+y'), 'evil', 500);
  await expect(slow.encode('x'.repeat(60))).rejects.toMatchObject({
    code: 'TokenizerUnsupported',
    message: expect.stringContaining('evil'),
  });
  const text = 'a b a c';
  expect(await guardedTokenizer(files('\\s+'), 'sound').encode(text)).toEqual(
    createTokenizer(files('\\s+'), 'sound').encode(text),
  );
});
