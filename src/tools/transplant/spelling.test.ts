/** Tokens of tokenizers that spell otherwise, and the pieces of a text. */
import { describe, expect, test } from 'vitest';
import type { Checkpoint } from '../../inputs/checkpoint';
import { modelTensors } from '../../inputs/model-tensors';
import { openModel } from '../../inputs/opened-model';
import { collectProblems } from '../../inputs/problems';
import { type KnownVocabulary, knownVocabulary, vocabularyOf } from '../../merge/vocabulary/vocabulary';
import type { ModelFolder } from '../../sources/model-folder';
import { piecesOf, sharedRows, spellingOf, textOf } from './spelling';
import { folderOf, type Spec } from './transplant.test.support';

const known = async (folder: ModelFolder) => {
  const checkpoint = (await openModel(folder, folder.path)) as Checkpoint;
  const model = modelTensors(folder.path, checkpoint, undefined, collectProblems());
  return (await knownVocabulary(vocabularyOf(model))) as KnownVocabulary;
};

const SPEC = { width: 4, seed: 1 };
const marks: Spec = {
  ...SPEC,
  tokens: ['▁the', 'the', '▁', '<0x0A>', '<0xE2>', '€', 'ing', '▁na', 'ï', 've'],
  special: ['<s>', '</s>', '<|im_end|>'],
  spelling: 'marks',
  settings: { bos_token: { content: '<s>' }, eos_token: '</s>' },
};
const bytes: Spec = {
  ...SPEC,
  tokens: ['Ġthe', 'the', 'Ġ', 'Ċ', 'â', 'âĤ¬', 'ing', 'ĠnaÃ¯ve', 'Ã¯'],
  special: ['<|im_end|>', '<|endoftext|>', '<|pad|>'],
  spelling: 'bytes',
  settings: { eos_token: '<|endoftext|>', pad_token: '<|pad|>' },
};
const pieces = (tokens: string[]) => ({
  version: '1.0',
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: null,
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
  model: {
    type: 'WordPiece',
    unk_token: 'the',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
  },
});

describe('the same token in other letters', () => {
  test('of bytes in SentencePiece, by what it stands for; special ones by content, then by role', async () => {
    const [model, donor] = [await known(folderOf('m', marks)), await known(folderOf('d', bytes))];
    const { rows, special } = sharedRows(await spellingOf(model), await spellingOf(donor), donor.ids);
    expect([...rows]).toEqual([
      ...[0, 1, 2, 3, 4, 5, 6].map((id) => [id, id]),
      [8, 8],
      ...[
        [9, 12],
        [10, 11],
      ],
    ]);
    expect(special).toBe(2);
  });

  test('a token of its own counts before a byte of the same letter', async () => {
    const model = await known(
      folderOf('m', { ...marks, tokens: ['<0x61>', 'a'], special: [], settings: {} }),
    );
    expect([...(await spellingOf(model)).rows]).toEqual([['a', 1]]);
  });

  test('WordPiece begins a word without a mark', async () => {
    const tokens = ['the', '##the', '##ing', 'na', '€'];
    const files = { 'tokenizer.json': pieces(tokens) };
    const donor = await known(folderOf('d', { ...bytes, tokens, special: [], files, settings: {} }));
    const model = await known(folderOf('m', marks));
    const { rows } = sharedRows(await spellingOf(model), await spellingOf(donor), donor.ids);
    expect(Object.fromEntries(rows)).toEqual({ 0: 0, 1: 1, 2: 6, 3: 7, 4: 5 });
  });

  test('bytes that are no characters are no text', () => {
    expect(textOf('\u00e2\u0082\u00ac')).toBe('€');
    expect(textOf('\u00e2\u0082')).toBeUndefined();
  });
});

test('pieces are asked for without the space that a tokenizer puts ahead, else behind the end of a line', async () => {
  const model = await known(folderOf('m', marks));
  const spelling = await spellingOf(model);
  const asked: string[][] = [];
  const encoded: Record<string, number[]> = {
    ...{ ' naïve': [2, 7, 8, 9], naïve: [7, 8, 9], the: [0], '\nthe': [2, 3, 1], ing: [2, 6] },
    ...{ '€€': [2, 5], '\n€€': [2, 3, 5], x: [2], '\nx': [2, 3], ' x': [2], '\n x': [2, 2] },
  };
  const found = await piecesOf(
    [' na\u00c3\u00afve', 'the', 'ing', '\u00e2\u0082\u00ac'.repeat(2), '\u00e2\n', 'x', ' x'],
    ...([spelling, model.ids, undefined] as const),
    async (texts) => {
      asked.push([...texts]);
      return texts.map((text) => encoded[text]!);
    },
  );
  expect(found).toEqual([[7, 8, 9], [1], [6], [2, 5], [4, 3], undefined, undefined]);
  expect(asked).toEqual([[' naïve', 'the', 'ing', '€€', 'x', ' x'], ['\nthe', '\n€€', '\nx', 'x'], ['\n x']]);
});
