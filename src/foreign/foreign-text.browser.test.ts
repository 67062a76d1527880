import { expect, test, vi } from 'vitest';
import { guardedTokenizer, matchModules, openGuardedParquet, renderGuarded } from './foreign-text';
import { createTokenizer } from './tokenizer';

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }];

/** A tokenizer that splits by an expression, and may have a decoder that replaces by another. */
function files(expression: string, replaced?: string) {
  const tokenizer = {
    model: {
      type: 'BPE',
      vocab: { a: 0, b: 1, x: 2, '<unk>': 3, ['x'.repeat(60)]: 4 },
      merges: [],
      unk_token: '<unk>',
    },
    normalizer: null,
    post_processor: null,
    decoder: replaced === undefined ? null : { type: 'Replace', pattern: { Regex: replaced }, content: 'y' },
    pre_tokenizer: { type: 'Split', pattern: { Regex: expression }, behavior: 'Removed', invert: false },
    added_tokens: [],
  };
  return { tokenizer: JSON.stringify(tokenizer), hasSentencePiece: false };
}

test('R59: a template that does not end is stopped, and what comes after it works', async () => {
  const loop = '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}';
  await expect(
    renderGuarded({ template: loop, tokens: {} }, [MESSAGES], true, undefined, 500),
  ).rejects.toMatchObject({
    code: 'TokenizerInvalid',
    message: expect.stringContaining('did not finish'),
  });
  const template = '{{ bos }}{{ messages[0].content }}';
  expect(await renderGuarded({ template, tokens: { bos: '<s>' } }, [MESSAGES], true)).toEqual(['<s>Hello']);
  await expect(renderGuarded({ template: '{% for %}', tokens: {} }, [MESSAGES], true)).rejects.toMatchObject({
    code: 'TokenizerInvalid',
    message: expect.stringContaining('does not render'),
  });
});

// with and without a quantifier in another
test.each(['(a+)+b', `${'a?'.repeat(40)}${'a'.repeat(40)}c`])(
  'R58: the module pattern %s, on which a matcher hangs, is given up',
  async (pattern) => {
    const matching = matchModules([{ pattern, value: 1 }], ['a'.repeat(300)], 'adapter_config.json');
    await expect(matching).rejects.toMatchObject({
      code: 'AdapterUnsupported',
      message: expect.stringContaining('too long'),
    });
  },
);

test('what is asked of the thread ends with its signal, at once, whatever it does', async () => {
  const loop = '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}';
  const bytes = new Uint8Array(64);
  const source = { byteLength: 64, read: async (begin: number, end: number) => bytes.slice(begin, end) };
  const never = { byteLength: 64, read: () => new Promise<never>(() => {}) };
  const asks: ((signal: AbortSignal) => Promise<unknown>)[] = [
    (signal) => renderGuarded({ template: loop, tokens: {} }, [MESSAGES], true, signal),
    (signal) => matchModules([{ pattern: '(a+)+b', value: 1 }], ['a'.repeat(300)], 'config', signal),
    async (signal) => (await guardedTokenizer(files('(x+x+)+y'), 'evil', signal)).encode('x'.repeat(60)),
    (signal) => openGuardedParquet(never, 'a.parquet', signal),
  ];
  for (const ask of asks) {
    const stop = new AbortController();
    const asked = ask(stop.signal);
    setTimeout(() => stop.abort(), 300);
    await expect(asked).rejects.toMatchObject({ code: 'Canceled' });
    await expect(ask(stop.signal)).rejects.toMatchObject({ code: 'Canceled' });
  }
  await expect(openGuardedParquet(source, 'a.parquet')).rejects.toMatchObject({ code: 'DatasetInvalid' });
});

test('R59: a template that would fill the memory, and with it end the tab, is refused in words', async () => {
  const bomb =
    "{% set s = namespace(x='abcdefgh', all=[]) %}{% for i in range(24) %}{% set s.x = s.x ~ s.x %}{% endfor %}" +
    '{% for i in range(1000) %}{% set s.all = s.all + [(s.x ~ i) | upper] %}{% endfor %}';
  await expect(renderGuarded({ template: bomb, tokens: {} }, [MESSAGES], true)).rejects.toMatchObject({
    code: 'TokenizerInvalid',
    message: expect.stringContaining('characters and list elements'),
  });
});

test('R59: an expression that backtracks is stopped; a sound one gives the same ids in its thread', async () => {
  const slow = await guardedTokenizer(files('(x+x+)+y'), 'evil', undefined, 3000);
  await expect(slow.encode('x'.repeat(60))).rejects.toMatchObject({
    code: 'TokenizerUnsupported',
    message: expect.stringContaining('evil'),
  });
  const text = 'a b a c';
  const sound = await guardedTokenizer(files('\\s+'), 'sound');
  const here = createTokenizer(files('\\s+'), 'sound');
  expect(await sound.encode(text)).toEqual(here.encode(text));
  expect([sound.size, sound.prefix]).toEqual([here.size, here.prefix]);
});

test('R59: a decoder that backtracks is stopped; a sound one gives the same text, token by token', async () => {
  const slow = (await guardedTokenizer(files('\\s+', '(x+x+)+y'), 'evil', undefined, 3000)).stream();
  await expect(slow.push(4)).rejects.toMatchObject({ code: 'TokenizerUnsupported' });
  slow.close();
  const sound = (await guardedTokenizer(files('\\s+', 'a'), 'sound')).stream();
  const here = createTokenizer(files('\\s+', 'a'), 'sound').stream();
  for (const id of [0, 1, 0]) expect(await sound.push(id)).toBe(here.push(id));
  expect(await sound.end()).toBe(here.end());
  sound.close();
});

test('one that stays is asked in one thread; what it hangs on is ended when it is closed, and the next call is answered', async () => {
  const sound = await guardedTokenizer(files('\\s+', 'a'), 'sound', undefined, undefined, true);
  const here = createTokenizer(files('\\s+', 'a'), 'sound');
  const started = vi.spyOn(globalThis, 'Worker');
  for (const text of ['a b a c', 'c a']) expect(await sound.encode(text)).toEqual(here.encode(text));
  for (let text = 0; text < 2; text++) {
    const [stream, expected] = [sound.stream(), here.stream()];
    for (const id of [0, 1, 0]) expect(await stream.push(id)).toBe(expected.push(id));
    stream.close();
  }
  expect(started).not.toHaveBeenCalled();
  sound.close();

  const evil = await guardedTokenizer(files('(x+x+)+y'), 'evil', undefined, undefined, true);
  const asked = evil.encode('x'.repeat(60));
  setTimeout(evil.close, 300);
  await expect(asked).rejects.toMatchObject({ code: 'Canceled' });
  expect(await evil.encode('a')).toEqual(createTokenizer(files('(x+x+)+y'), 'evil').encode('a'));
  evil.close();
});
