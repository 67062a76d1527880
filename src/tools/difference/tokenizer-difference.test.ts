import { expect, test } from 'vitest';
import type { Checkpoint } from '../../inputs/checkpoint';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { compareTokenizerFiles } from './tokenizer-difference';

const side = (path: string, files: Record<string, object | string>) =>
  ({
    kind: 'checkpoint',
    path,
    folder: memoryFolder(path, files),
    tensors: new Map(),
    weightFiles: [],
    dequantized: { tensors: new Map(), formats: new Set(), unscaled: [] },
  }) as Checkpoint;

const bpe = {
  added_tokens: [{ id: 3, content: '</s>' }],
  normalizer: null,
  pre_tokenizer: { type: 'ByteLevel' },
  decoder: { type: 'ByteLevel' },
  model: { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] },
};

const compare = (one: Record<string, object | string>, two: Record<string, object | string>) =>
  compareTokenizerFiles(side('base', one), side('tuned', two));

test('the same file, and the same tokens in another writing', async () => {
  const same = await compare({ 'tokenizer.json': bpe }, { 'tokenizer.json': bpe });
  expect(same).toMatchObject({ verdict: 'same-file', vocabulary: { base: 4, finetuned: 4 } });
  const pairs = { ...bpe, decoder: { type: 'Fuse' }, model: { ...bpe.model, merges: [['a', 'b']] } };
  const written = await compare({ 'tokenizer.json': bpe }, { 'tokenizer.json': pairs });
  expect(written.verdict).toBe('same-tokens');
  expect(written.words).toEqual([
    'Both tokenizers give the same ids.',
    'What is put around or made of the tokens differs: decoder.',
  ]);
});

test('added, missing and moved tokens, merges, preparation', async () => {
  const other = {
    ...bpe,
    added_tokens: [...bpe.added_tokens, { id: 4, content: '<pad>' }],
    normalizer: { type: 'NFC' },
    model: { ...bpe.model, vocab: { b: 0, a: 1, abc: 2 }, merges: ['a b', 'ab c'] },
  };
  const found = await compare({ 'tokenizer.json': bpe }, { 'tokenizer.json': other });
  expect(found).toMatchObject({
    verdict: 'different',
    onlyInBase: { count: 1, examples: ['ab'] },
    onlyInFinetuned: { count: 2, examples: ['abc', '<pad>'] },
    moved: { count: 2, examples: ['a', 'b'] },
  });
  expect(found.words).toEqual([
    'One token is in the base only: “ab”.',
    '2 tokens are in the fine-tune only: “abc”, “<pad>”.',
    '2 tokens have a different id in the fine-tune: “a”, “b”.',
    'The lists of merges differ, 1 and 2 long, from number 2 on: text is split differently.',
    'Text is prepared differently: normalizer differ.',
  ]);
});

test('a Unigram vocabulary is numbered by its order', async () => {
  const unigram = (tokens: string[]) => ({ model: { type: 'Unigram', vocab: tokens.map((t) => [t, -1.5]) } });
  const found = await compare(
    { 'tokenizer.json': unigram(['x', 'y']) },
    { 'tokenizer.json': unigram(['y', 'x']) },
  );
  expect(found.moved.count).toBe(2);
});

test('special tokens and chat templates', async () => {
  const found = await compare(
    { 'tokenizer.json': bpe, 'tokenizer_config.json': { eos_token: '</s>' } },
    {
      'tokenizer.json': bpe,
      'tokenizer_config.json': { eos_token: { content: '<end>' } },
      'chat_template.jinja': '{{ x }}',
    },
  );
  expect(found.words.slice(1)).toEqual([
    'The eos_token is "</s>" in the base and "<end>" in the fine-tune.',
    'Only the fine-tune has a chat template.',
  ]);
});

test('a missing or broken file cannot be compared, and stops nothing', async () => {
  expect(await compare({}, { 'tokenizer.json': bpe })).toMatchObject({
    verdict: 'unknown',
    words: ['The tokenizers cannot be compared: the base has no tokenizer.json.'],
  });
  expect((await compare({}, {})).words).toEqual([
    'The tokenizers cannot be compared: neither model has a tokenizer.json.',
  ]);
  const broken = await compare({ 'tokenizer.json': '{"model":' }, { 'tokenizer.json': bpe });
  expect(broken.verdict).toBe('unknown');
  expect(broken.words[0]).toContain('base/tokenizer.json');
});
