/** A tokenizer that was written as GGUF is read as one that makes the same ids; what is not known is not guessed. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { AmalgamError } from '../errors';
import { ODD_TEXTS } from '../foreign/odd-texts.test.fixture';
import { createTokenizer } from '../foreign/tokenizer';
import { TOKENIZERS } from '../foreign/tokenizers.test.fixture';
import { bufferSource } from '../sources/byte-source';
import { ggufFile } from './gguf-file';
import { planGguf } from './gguf-plan';
import { readGgufHeader } from './read-header';
import { ggufTokenizerTexts } from './read-tokenizer';
import type { TokenizerTexts } from './tokenizer';
import { thinModel } from './tokenizer.test.support';

/** Written, and read again; undefined where llama.cpp has no such tokenizer. */
async function readBack(texts: TokenizerTexts, rows: number) {
  const plan = (() => {
    try {
      return planGguf({ type: 'F32', name: 'm', ...thinModel(rows), tokenizer: texts });
    } catch (thrown) {
      if (thrown instanceof AmalgamError && thrown.code === 'GgufUnsupported') return undefined;
      throw thrown;
    }
  })();
  if (!plan) return undefined;
  const { header, byteLength } = ggufFile('m.gguf', plan, [...plan.tensors.keys()]);
  const bytes = new Uint8Array(byteLength);
  bytes.set(header);
  const { metadata } = await readGgufHeader(bufferSource(bytes), 'm.gguf');
  return {
    plan,
    read: ggufTokenizerTexts({ metadata, fileName: 'm.gguf', tensors: new Map(), factors: new Map() }),
  };
}

const corpus = ['workshop', 'kitchen', 'harbour'].map((name) =>
  readFileSync(`public/samples/texts/${name}.eval.txt`, 'utf8').slice(0, 4000),
);
const open = (tokenizer: string, config?: string) =>
  createTokenizer({ tokenizer, ...(config === undefined ? {} : { config }), hasSentencePiece: false }, 'm');

/** llama.cpp has no flags of added tokens, and the starcoder of the list makes bytes into letters twice. */
const isSayable = (name: string, text: string) =>
  name !== 'starcoder' && !/"(?:single_word|lstrip|rstrip|normalized)":true/.test(text);
const once = JSON.parse(TOKENIZERS.find(([name]) => name === 'regex')![1]) as { pre_tokenizer: object };
const digits = [{ type: 'Digits', individual_digits: true }, once.pre_tokenizer];
const starcoder = JSON.stringify({ ...once, pre_tokenizer: { type: 'Sequence', pretokenizers: digits } });

const SAYABLE = new Map([
  ...TOKENIZERS.filter(([name, text]) => isSayable(name, text)),
  ['single digits', starcoder],
]);

const written: string[] = [];
test.each([...SAYABLE.keys()])('%s', async (name) => {
  const tokenizer = SAYABLE.get(name)!;
  const ours = open(tokenizer);
  const back = await readBack({ tokenizer }, ours.size);
  if (!back) return;
  written.push(name);
  const there = open(back.read.tokenizer, back.read.config);
  expect([there.prefix, there.suffix]).toEqual([ours.prefix, ours.suffix]);
  // what the plan tells of is otherwise in llama.cpp too
  for (const text of back.plan.warnings.length > 0 ? corpus : [...ODD_TEXTS, ...corpus]) {
    const ids = ours.encode(text);
    expect(there.encode(text), JSON.stringify(text.slice(0, 60))).toEqual(ids);
    if (['regex', 'pieces'].includes(name)) expect(there.decode(ids)).toBe(ours.decode(ids));
  }
});

test('most kinds were written at all', () => {
  expect(written).toEqual(
    expect.arrayContaining([
      'sample',
      'regex',
      'single digits',
      'merged',
      'pieces',
      'split llama3',
      'split tekken',
    ]),
  );
});

test('settings and template come back', async () => {
  const [, tokenizer] = TOKENIZERS.find(([name]) => name === 'pieces')!;
  const template = '{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}';
  const config = JSON.stringify({ bos_token: '<s>', eos_token: '</s>', chat_template: template });
  const back = await readBack({ tokenizer, config }, open(tokenizer).size);
  expect(JSON.parse(back!.read.config)).toMatchObject({
    ...{ bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>', chat_template: template },
  });
});

test.each<[string, Record<string, unknown>, RegExp]>([
  [
    'an unknown rule',
    { 'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'zebra' },
    /“zebra”.*not known/,
  ],
  ['no rule', { 'tokenizer.ggml.model': 'gpt2' }, /“default”/],
  ['another kind', { 'tokenizer.ggml.model': 't5' }, /kind that is not read/],
  ['none', { 'tokenizer.ggml.tokens': [] }, /no list of tokens/],
  ['two of one name', { 'tokenizer.ggml.tokens': ['a', 'a'] }, /twice/],
  ['pieces without scores', { 'tokenizer.ggml.model': 'llama' }, /no scores/],
])('%s: refused, with the next step', (_, more, message) => {
  const metadata = new Map(Object.entries({ 'tokenizer.ggml.tokens': ['a', 'b'], ...more }));
  const model = { metadata, fileName: 'm.gguf', tensors: new Map(), factors: new Map() };
  expect(() => ggufTokenizerTexts(model as never)).toThrow(
    expect.objectContaining({
      code: 'TokenizerUnsupported',
      message: expect.stringMatching(message),
      hint: expect.stringContaining('tokenizer.json'),
    }),
  );
});
