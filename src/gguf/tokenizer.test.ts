import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer } from 'tokenizers';
import { describe, expect, test } from 'vitest';
import { hasLlama, llama } from '../../e2e/llama-cpp';
import { checkVocabulary, createTokenizer } from '../foreign/tokenizer';
import { TOKENIZERS } from '../foreign/tokenizers.test.fixture';
import { scratchFolder } from '../scratch-folder.test.support';
import { ggufFile } from './gguf-file';
import { planGguf } from './gguf-plan';
import { BYTE_TOKENS, ggufTokenizer } from './tokenizer';
import { thinModel } from './tokenizer.test.support';

type Json = Record<string, unknown>;
const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
const of = (name: string) => JSON.parse(TOKENIZERS.find(([each]) => each === name)![1]) as Json;
const read = (tokenizer: unknown, rows: number, config?: Json) =>
  ggufTokenizer(
    { tokenizer: JSON.stringify(tokenizer), ...(config ? { config: JSON.stringify(config) } : {}) },
    rows,
    new Map(),
    'm',
  );

test('vocabularies of today: 262 144 tokens are more than a call takes arguments', () => {
  const tokenizer = (rows: number) => {
    const words = Array.from({ length: rows - BYTE_TOKENS.length }, (_, id) => `t${id}`);
    const vocab = Object.fromEntries([...BYTE_TOKENS, ...words].map((token, id) => [token, id]));
    return { added_tokens: [], model: { type: 'BPE', byte_fallback: true, vocab, merges: [] } };
  };
  const rows = 262_144;
  const tokens = new Map(read(tokenizer(rows), rows).metadata).get('tokenizer.ggml.tokens') as {
    values: readonly string[];
  };
  expect(tokens.values).toHaveLength(rows);
  expect(tokens.values.at(-1)).toBe('t261887');
  expect(() => read(tokenizer(300), 299)).toThrow(
    expect.objectContaining({ message: expect.stringContaining('ids up to 299') }),
  );
});

test('what changes a text ahead of its splitting is named, or refused where it changes most texts', () => {
  const said = (normalizer: unknown, name = 'regex') => read({ ...of(name), normalizer }, 2000).warnings[0];
  const spaces = [
    { type: 'Prepend', prepend: '▁' },
    { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
  ];
  expect(said(null)).toBeUndefined();
  expect(said({ type: 'Sequence', normalizers: spaces }, 'pieces')).toBeUndefined();
  expect(said({ type: 'NFC' })!.message).toContain('the form NFC first');
  expect(() => said({ type: 'Lowercase' })).toThrow(expect.objectContaining({ code: 'GgufUnsupported' }));
});

const model = of('pieces').model as Json;

test.each([
  [
    'bytes to fall back on that are not there',
    { model: { type: 'BPE', byte_fallback: true, vocab: { a: 0 }, merges: [] } },
    '<0x00>',
  ],
  [
    'two tokens of one id',
    { model: { ...model, vocab: { ...(model.vocab as Json), again: 0 } } },
    'two tokens the id 0, “<unk>” and “again”',
  ],
  ['two tokens in front', { post_processor: around(['<s>', '</s>'], []) }, 'one token in front'],
  ['another token behind than that of the end', { post_processor: around([], ['<s>']) }, 'behind a text'],
])('%s: refused', (_, change, message) => {
  expect(() => read({ ...of('pieces'), ...change }, 2000, { eos_token: '</s>' })).toThrow(
    expect.objectContaining({ code: 'GgufUnsupported', message: expect.stringContaining(message) }),
  );
});

const tokensOf = (json: unknown, rows: number) => {
  const { metadata, warnings } = read(json, rows);
  const { values } = new Map(metadata).get('tokenizer.ggml.tokens') as { values: readonly string[] };
  return { values, warnings };
};

test.each(['added alone', 'in the vocabulary too'])(
  'an added token beyond the rows, %s, is left out with a note; the evaluation runs what has it not',
  (how) => {
    const json = of('regex') as Json & { added_tokens: Json[]; model: { vocab: Record<string, number> } };
    const rows = createTokenizer({ tokenizer: JSON.stringify(json), hasSentencePiece: false }, 'm').size;
    json.added_tokens = [...json.added_tokens, { ...flags, content: '[PAD]', id: rows, rstrip: false }];
    if (how !== 'added alone') json.model.vocab['[PAD]'] = rows;
    const { values, warnings } = tokensOf(json, rows);
    expect(values).toHaveLength(rows);
    expect(values).not.toContain('[PAD]');
    expect(warnings).toEqual([
      expect.objectContaining({ isNote: true, message: expect.stringContaining('[PAD]') }),
    ]);
    const ours = createTokenizer({ tokenizer: JSON.stringify(json), hasSentencePiece: false }, 'm');
    expect(() => checkVocabulary(ours, rows)).not.toThrow();
    expect(ours.encode('ab').every((id) => id < rows)).toBe(true);
    expect(ours.encode('a[PAD]b')).toContain(rows);
  },
);

test('a token beyond the rows in front of every text: refused', () => {
  const json = { ...of('pieces'), post_processor: around(['<s>'], []) };
  (json.post_processor.special_tokens as Record<string, { ids: number[] }>)['<s>']!.ids = [2000];
  expect(() => read(json, 2000)).toThrow(expect.objectContaining({ code: 'GgufUnsupported' }));
});

test.each<[string, Record<string, number>, [content: string, id: number][]]>([
  ['no hole', { a: 0, b: 1 }, [['[X]', 2]]],
  [
    'a hole in the vocabulary',
    { a: 0, b: 1, z: 9 },
    [
      ['[X]', 10],
      ['[Y]', 11],
    ],
  ],
  [
    'one of the vocabulary among the added',
    { a: 0, b: 1, z: 9 },
    [
      ['z', 9],
      ['[X]', 10],
    ],
  ],
  [
    'a hole among the added',
    { a: 0, b: 1 },
    [
      ['[X]', 4],
      ['[Y]', 6],
    ],
  ],
  [
    'another order',
    { a: 0, b: 1 },
    [
      ['[Y]', 3],
      ['[X]', 2],
    ],
  ],
])('%s: the file has the ids that Rust and the evaluation give', (_, vocab, added) => {
  const json = {
    ...of('regex'),
    added_tokens: added.map(([content, id]) => ({ ...flags, content, id, rstrip: false })),
    post_processor: null,
    model: { type: 'BPE', vocab, merges: [] },
  };
  const text = JSON.stringify(json);
  const ours = createTokenizer({ tokenizer: text, hasSentencePiece: false }, 'm');
  const rust = Tokenizer.fromString(text);
  const { values } = tokensOf(json, 12);
  for (const [content] of added) {
    expect([ours.idOf(content), values.indexOf(content)]).toEqual(Array(2).fill(rust.tokenToId(content)));
  }
});

/** A post-processor; the first tokens of `pieces` are `<unk>`, `<s>` and `</s>`. */
function around(ahead: string[], behind: string[]): Json {
  const ids: Record<string, number> = { '<s>': 1, '</s>': 2 };
  const special = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  return {
    type: 'TemplateProcessing',
    single: [...ahead.map(special), { Sequence: { id: 'A', type_id: 0 } }, ...behind.map(special)],
    pair: [],
    special_tokens: Object.fromEntries(
      [...ahead, ...behind].map((id) => [id, { id, ids: [ids[id]], tokens: [id] }]),
    ),
  };
}

const scratch = scratchFolder();

const ends = ['<|end|>', '<|user|>', '<|endoftext|>'];
const withEnds = (rstrip: boolean, from = 2000) => ({
  ...of('pieces'),
  added_tokens: [
    ...(of('pieces').added_tokens as Json[]),
    ...ends.map((content, i) => ({ ...flags, content, id: from + i, rstrip: rstrip && i < 2 })),
  ],
});
const size = Object.keys((of('pieces').model as { vocab: Json }).vocab).length;

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('llama.cpp makes the ids that we make, the token in front with them', () => {
  const template = (token: string) => ({ ...of('pieces'), post_processor: around([token], []) });
  const asked = { add_bos_token: true, bos_token: '<s>' };
  test.each<
    [string, { json: Json; config?: Json; name?: string; rows?: number; called?: string; warns?: string }]
  >([
    ['BOS only in the post-processor', { json: template('<s>') }],
    ['of bytes', { json: of('regex') }],
    [
      'the template puts another token than bos_token',
      { json: template('</s>'), config: { bos_token: '<s>' } },
    ],
    ['add_bos_token without a template', { json: of('pieces'), config: asked }],
    [
      'add_bos_token against the template',
      { json: template('<s>'), config: { ...asked, add_bos_token: false } },
    ],
    ['a token behind', { json: { ...of('pieces'), post_processor: around(['<s>'], ['</s>']) } }],
    ['Phi-3 by another name', { json: withEnds(true, size), called: 'm (phi-3)' }],
    [
      'another by the name of Phi-3',
      { json: withEnds(false, size), name: 'Phi-3-phi3', called: 'phi 3-phi 3' },
    ],
    [
      'added tokens beyond the rows',
      { json: withEnds(false, size), rows: size, warns: '3 added tokens <|end|>' },
    ],
  ])('%s', (_, { json, config, name = 'm', rows, called = name, warns }) => {
    const texts = { tokenizer: JSON.stringify(json), ...(config ? { config: JSON.stringify(config) } : {}) };
    const ours = createTokenizer({ ...texts, hasSentencePiece: false }, name);
    const plan = planGguf({ type: 'F32', name, ...thinModel(rows ?? ours.size), tokenizer: texts });
    expect(plan.metadata.get('general.name')).toEqual({ type: 'text', value: called });
    expect(plan.warnings.map(({ message }) => message)).toEqual(
      warns ? [expect.stringContaining(warns)] : [],
    );
    const { header, byteLength } = ggufFile('m.gguf', plan, [...plan.tensors.keys()]);
    const path = join(scratch, 'm.gguf');
    writeFileSync(path, Buffer.concat([header, Buffer.alloc(byteLength - header.length)]));
    const model = llama().open(path);
    try {
      const special = rows === undefined && ends.every((end) => ours.idOf(end) !== undefined);
      for (const text of [
        'hello the cat',
        'ab',
        ...(special ? [`hello${ends[0]}\n  the${ends[1]} ab`] : []),
      ]) {
        const expected = [...ours.prefix, ...ours.encode(text), ...ours.suffix];
        expect(model.tokenize(text, true)).toEqual(expected);
      }
    } finally {
      model.close();
    }
  });
});
