/** Against Rust: the `tokenizers` of npm are its build for Node. */
import { Tokenizer as Rust } from 'tokenizers';
import { expect, test } from 'vitest';
import { ODD_TEXTS } from './odd-texts.test.fixture';
import { createTokenizer } from './tokenizer';
import { TOKENIZERS } from './tokenizers.test.fixture';

test.each(TOKENIZERS)('%s: ids and texts are those of Rust', async (name, tokenizer) => {
  const rust = Rust.fromString(tokenizer);
  const ours = createTokenizer({ tokenizer, hasSentencePiece: false }, name);
  const encoded = await rust.encodeBatch([...ODD_TEXTS], { addSpecialTokens: false });
  const ids = encoded.map((encoding) => encoding.getIds());
  expect(ODD_TEXTS.map((text) => ours.encode(text))).toEqual(ids);
  expect(ids.map((each) => ours.decode(each))).toEqual(await rust.decodeBatch(ids, true));
});

test('a table of SentencePiece replaces', () => {
  const [, tokenizer] = TOKENIZERS.find(([name]) => name === 'normalizer table')!;
  const ours = createTokenizer({ tokenizer, hasSentencePiece: false }, 'table');
  expect(ours.decode(ours.encode('ﬁé\u0085x'))).toBe('fiE x');
});

test.each([
  ['normalizer', { type: 'Nmt' }, 'the normalizer Nmt'],
  ['pre_tokenizer', { type: 'UnicodeScripts' }, 'the pre-tokenizer UnicodeScripts'],
  [
    'decoder',
    { type: 'CTC', pad_token: '<pad>', word_delimiter_token: '|', cleanup: true },
    'the decoder CTC',
  ],
  [
    'model',
    { type: 'BPE', vocab: {}, merges: [], continuing_subword_prefix: '##' },
    'continuing_subword_prefix',
  ],
  ['model', { type: 'Unigram', vocab: [['a', 0]] }, 'no token for unknown characters'],
])('another %s is refused by its name', (field, value, message) => {
  const [, sample] = TOKENIZERS[0]!;
  const tokenizer = JSON.stringify({ ...(JSON.parse(sample) as object), [field]: value });
  expect(() => createTokenizer({ tokenizer, hasSentencePiece: false }, 'm')).toThrow(
    expect.objectContaining({ code: 'TokenizerUnsupported', message: expect.stringContaining(message) }),
  );
});

// ids of transformers 5.18 differ from those of the file alone: its class LlamaTokenizer splits by itself
test.each([
  ['first', {}],
  ['always', { legacy: true }],
  ['never', { add_prefix_space: false }],
])('LlamaTokenizer marks %s', async (prepend_scheme, settings) => {
  const [, tokenizer] = TOKENIZERS.find(([name]) => name === 'pieces, added')!;
  const config = JSON.stringify({ tokenizer_class: 'LlamaTokenizer', ...settings });
  const ours = createTokenizer({ tokenizer, config, hasSentencePiece: false }, 'llama');
  const rust = Rust.fromString(
    JSON.stringify({
      ...(JSON.parse(tokenizer) as object),
      normalizer: null,
      pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme, split: false },
    }),
  );
  await Promise.all(
    ODD_TEXTS.map(async (text) => {
      const encoding = await rust.encode(text, null, { addSpecialTokens: false });
      expect(ours.encode(text)).toEqual(encoding.getIds());
    }),
  );
});

test('transformers reads the file of Mistral as it is, though it names LlamaTokenizer', () => {
  const [, tokenizer] = TOKENIZERS.find(([name]) => name === 'pieces, added')!;
  const config = JSON.stringify({ tokenizer_class: 'LlamaTokenizer' });
  const open = (modelType: string) =>
    createTokenizer({ tokenizer, config, modelType, hasSentencePiece: false }, modelType);
  const [text, plain] = ['<|im_start|>he', createTokenizer({ tokenizer, hasSentencePiece: false }, 'file')];
  expect(open('mistral').encode(text)).toEqual(plain.encode(text));
  expect(open('llama').encode(text)).not.toEqual(plain.encode(text));
});

test('a stream goes on with a text: its first word keeps its space', () => {
  const [, tokenizer] = TOKENIZERS.find(([name]) => name === 'pieces')!;
  const ours = createTokenizer({ tokenizer, hasSentencePiece: false }, 'm');
  const [prompt, more] = [ours.encode('hello'), ours.encode('the')];
  const told = (before?: number[]) => {
    const stream = ours.stream(before);
    return more.map((id) => stream.push(id)).join('') + stream.end();
  };
  expect(told(prompt)).toBe(' the');
  expect(told()).toBe('the');
});

test('an id without a token, and only special tokens, have no text', () => {
  const [, tokenizer] = TOKENIZERS.find(([name]) => name === 'pieces')!;
  const ours = createTokenizer(
    {
      tokenizer,
      config: JSON.stringify({ eos_token: 'he', clean_up_tokenization_spaces: true }),
      hasSentencePiece: false,
    },
    'm',
  );
  expect(ours.decode([99_999])).toBe('');
  // what the config names is special, and BPE is not cleaned up
  expect(ours.decode([...ours.encode('he'), ...ours.encode('a .')])).toBe('a .');
});
