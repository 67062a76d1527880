/** Tokenizers that differ in one part each; what is read of a tokenizer.json is held against Rust over all of them. */
import { readFileSync } from 'node:fs';

type Json = Record<string, unknown>;

const byteLevel = JSON.parse(readFileSync('public/samples/base/tokenizer.json', 'utf8')) as Json & {
  model: { vocab: Record<string, number> };
};
const BYTES = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
);
const unique = (tokens: readonly string[]) =>
  Object.fromEntries([...new Set(tokens)].map((token, id) => [token, id]));
const added = (content: string, id: number, flags: Json = {}) => ({
  ...{ content, id, single_word: false, lstrip: false, rstrip: false, normalized: false, special: false },
  ...flags,
});
const part = (type: string, fields: Json = {}): Json => ({ type, ...fields });
const BL = part('ByteLevel', { add_prefix_space: false, trim_offsets: true, use_regex: false });
const before = (...pretokenizers: Json[]): Json => ({
  pre_tokenizer: part('Sequence', { pretokenizers: [...pretokenizers, BL] }),
});
const split = (Regex: string, behavior = 'Isolated', invert = false) =>
  part('Split', { pattern: { Regex }, behavior, invert });

const LLAMA3 =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const TEKKEN =
  '[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const PATTERNS = {
  llama3: LLAMA3,
  qwen2: LLAMA3.replace('{1,3}', ''),
  qwen35: LLAMA3.replace('{1,3}', '')
    .replaceAll('\\p{L}', '\\p{L}\\p{M}')
    .replace('?\\p{L}\\p{M}+', '?[\\p{L}\\p{M}]+'),
  tekken: TEKKEN,
  bloom: ' ?[^(\\s|[.,!?…。，、।۔،])]+',
  cl100k:
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
  words: '\\w+|[^\\w\\s]+|\\s+',
  digits: '\\d{1,3}|[^\\d\\s]+|\\s+',
  posix: '[[:alpha:]]+|[[:digit:]]+|[[:punct:]]+|[[:space:]]+',
  han: '\\p{Han}+|[^\\p{Han}]+',
  anchors: '^\\s+|\\s+$|\\A\\p{L}+|\\p{L}+\\z|\\p{L}+',
  escapes: '[\\\'\\"]|[\\-\\_]|[^\\s\\\'\\"]+|\\s+',
  lookahead: '\\s+(?=\\S)',
  signs: '[\\p{P}\\p{S}]',
};
const BEHAVIORS = ['Removed', 'Isolated', 'Contiguous', 'MergedWithPrevious', 'MergedWithNext'];

const next = Object.keys(byteLevel.model.vocab).length;
const FLAGS = [
  added('<L>', next, { lstrip: true }),
  added('<R>', next + 1, { rstrip: true }),
  added('<LR>', next + 2, { lstrip: true, rstrip: true, special: true }),
  added('<N>', next + 3, { normalized: true }),
  added('<think>', next + 4),
  added('<think>x', next + 5),
  added('  ', next + 6),
  added('\n\n\n', next + 7),
  added('HELLO', next + 8, { normalized: true }),
  added('World', next + 9),
  added('<|im_start|>', next + 10, { special: true }),
  // the model's own, under another id
  added('the', 0, { single_word: true }),
  added('cat', next + 11, { single_word: true, normalized: true }),
];
const flagged = { added_tokens: [...(byteLevel.added_tokens as Json[]), ...FLAGS] };
const NORMALIZERS = {
  nfc: part('NFC'),
  nfd: part('NFD'),
  nfkc: part('NFKC'),
  nfkd: part('NFKD'),
  strip: part('Strip', { strip_left: true, strip_right: true }),
  lower: part('Lowercase'),
  accents: part('Sequence', { normalizers: [part('NFD'), part('StripAccents')] }),
  bert: part('BertNormalizer', {
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  }),
  cased: part('BertNormalizer', {
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: true,
    lowercase: false,
  }),
  replaced: part('Replace', { pattern: { Regex: ' {2,}' }, content: '$&▁' }),
  prepended: part('Prepend', { prepend: '_' }),
  table: part('Precompiled', {
    precompiled_charsmap: charsmap({ ﬁ: 'fi', Ⅷ: 'VIII', é: 'E', '\u0085': ' ' }),
  }),
};

/** BPE over SentencePiece's pieces. */
const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?\'"-_/:;()$é中';
const pieces: Json = {
  added_tokens: ['<unk>', '<s>', '</s>'].map((content, id) => added(content, id, { special: true })),
  normalizer: part('Sequence', {
    normalizers: [
      part('Prepend', { prepend: '▁' }),
      part('Replace', { pattern: { String: ' ' }, content: '▁' }),
    ],
  }),
  pre_tokenizer: null,
  post_processor: null,
  decoder: part('Sequence', {
    decoders: [
      part('Replace', { pattern: { String: '▁' }, content: ' ' }),
      part('ByteFallback'),
      part('Fuse'),
      part('Strip', { content: ' ', start: 1, stop: 0 }),
    ],
  }),
  model: {
    ...{ type: 'BPE', unk_token: '<unk>', fuse_unk: true, byte_fallback: true, dropout: null },
    vocab: unique([
      ...['<unk>', '<s>', '</s>'],
      ...BYTES,
      '▁',
      ...letters,
      'he',
      'll',
      'llo',
      '▁t',
      'th',
      '▁▁',
      'hello',
      '▁he',
      'ab',
      'aa',
    ]),
    merges: ['▁ ▁', 'h e', 'l l', 'll o', '▁ t', 't h', 'he llo', '▁ he', 'a b', 'a a'],
  },
};
const piecesModel = pieces.model as Json;
const last = Object.keys(piecesModel.vocab as Json).length;
const piecesAdded = {
  added_tokens: [
    ...(pieces.added_tokens as Json[]),
    added('<|im_start|>', last, { special: true }),
    added('<|im_end|>', last + 1),
    added('<tool>', last + 2, { normalized: true }),
    added('▁▁', last + 3),
    added('<x> ', last + 3, { rstrip: true }),
  ],
};
const metaspace = (prepend_scheme: string, isSplit: boolean): Json => {
  const fields = { replacement: '▁', prepend_scheme, split: isSplit };
  return { normalizer: null, pre_tokenizer: part('Metaspace', fields), decoder: part('Metaspace', fields) };
};

const words = unique([
  ...['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'],
  ..."abcdefghijklmnopqrstuvwxyz0123456789.,!?'-éüσςαβι中文日本",
  ...Array.from('abcdefghijklmnopqrstuvwxyz0123456789éüσςαβι', (letter) => `##${letter}`),
  ...['the', 'cat', 'un', '##aff', '##able', 'hello', 'world', 'istanbul', '##ing', 'straße', 'ss'],
]);
const bert = (fields: Json): Json => ({
  added_tokens: ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map((content, id) =>
    added(content, id, { special: true }),
  ),
  normalizer: { ...NORMALIZERS.bert, ...fields },
  pre_tokenizer: part('BertPreTokenizer'),
  post_processor: null,
  decoder: part('WordPiece', { prefix: '##', cleanup: true }),
  model: {
    ...{
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
    },
    vocab: words,
  },
});

const scored: [string, number][] = [
  ...(['<unk>', '<s>', '</s>'].map((token) => [token, 0]) as [string, number][]),
  ...([
    ['▁', -2],
    ['a', -3],
    ['b', -3],
    ['ab', -6],
    ['aa', -6],
    ['▁a', -5],
    ['abc', -7],
    ['c', -3],
    ['bc', -4],
  ] as [string, number][]),
  ...([
    ['▁the', -3.5],
    ['the', -4],
    ['t', -5],
    ['h', -5],
    ['e', -5],
    ['é', -5],
    ['𝔘', -8],
    ['l', -4],
    ['o', -4],
  ] as [string, number][]),
  ...([
    ['ll', -8],
    ['llo', -10],
    ['he', -9],
    ['hello', -12],
    ['▁hello', -9.1],
    ['is', -8],
    ['1', -4],
    ['.', -3],
  ] as [string, number][]),
];
const unigram = (model: Json, fields: Json = {}): Json => ({
  added_tokens: pieces.added_tokens,
  ...{ ...metaspace('always', true), normalizer: part('NFKC') },
  post_processor: null,
  model: { type: 'Unigram', unk_id: 0, vocab: scored, byte_fallback: false, ...model },
  ...fields,
});

/** The texts of tokenizer.json by what is odd about them; `pieces` is one of SentencePiece as Llama 2 has it. */
export const TOKENIZERS: readonly (readonly [name: string, text: string])[] = Object.entries({
  sample: byteLevel,
  regex: { ...byteLevel, pre_tokenizer: { ...BL, use_regex: true } },
  spaced: { ...byteLevel, pre_tokenizer: { ...BL, use_regex: true, add_prefix_space: true } },
  ...named('split', PATTERNS, (pattern) => ({ ...byteLevel, ...before(split(pattern)) })),
  ...Object.fromEntries(
    BEHAVIORS.flatMap((behavior) => [
      ...[false, true].map((invert): [string, Json] => [
        `${behavior}${invert ? ' inverted' : ''}`,
        { ...byteLevel, ...before(split('\\s|[\\p{P}\\p{S}]', behavior, invert)) },
      ]),
      [`Punctuation ${behavior}`, { ...byteLevel, ...before(part('Punctuation', { behavior })) }],
    ]),
  ),
  string: { ...byteLevel, ...before({ ...split('', 'MergedWithPrevious'), pattern: { String: ' ' } }) },
  starcoder: {
    ...byteLevel,
    ...before(part('Digits', { individual_digits: true }), { ...BL, use_regex: true }),
  },
  falcon: {
    ...byteLevel,
    ...before(
      part('Punctuation', { behavior: 'Contiguous' }),
      part('Digits', { individual_digits: false }),
      split('[0-9][0-9][0-9]'),
    ),
  },
  ...named('words', ['Whitespace', 'WhitespaceSplit', 'BertPreTokenizer'], (type: string) => ({
    ...byteLevel,
    ...before(part(type)),
  })),
  delimiter: { ...byteLevel, ...before(part('CharDelimiterSplit', { delimiter: 'e' })) },
  length: { ...byteLevel, ...before(part('FixedLength', { length: 3 })) },
  ...named('normalizer', NORMALIZERS, (normalizer) => ({ ...byteLevel, ...flagged, normalizer })),
  flags: { ...byteLevel, ...flagged },
  merged: { ...byteLevel, model: { ...byteLevel.model, ignore_merges: true } },
  pieces: pieces,
  'pieces, added': { ...pieces, ...piecesAdded },
  ...Object.fromEntries(
    ['first', 'always', 'never'].flatMap((scheme) =>
      [true, false].map((isSplit): [string, Json] => [
        `metaspace ${scheme}${isSplit ? ' split' : ''}`,
        { ...pieces, ...piecesAdded, ...metaspace(scheme, isSplit) },
      ]),
    ),
  ),
  gemma: {
    ...{ ...pieces, ...piecesAdded },
    normalizer: part('Replace', { pattern: { String: ' ' }, content: '▁' }),
    pre_tokenizer: { ...split('', 'MergedWithPrevious'), pattern: { String: ' ' } },
  },
  'without bytes': { ...pieces, model: { ...piecesModel, byte_fallback: false } },
  'unknown one by one': { ...pieces, model: { ...piecesModel, byte_fallback: false, fuse_unk: false } },
  suffixes: { ...pieces, decoder: part('BPEDecoder', { suffix: 'e' }) },
  undecoded: { ...pieces, decoder: null },
  bert: bert({}),
  'bert with accents': bert({ strip_accents: false }),
  'bert with capitals': bert({ lowercase: false }),
  'whole words': {
    ...bert({}),
    decoder: null,
    model: { type: 'WordLevel', vocab: words, unk_token: '[UNK]' },
  },
  unigram: unigram({}),
  'unigram, bytes': unigram({ byte_fallback: true, vocab: [...scored, ...BYTES.map((byte) => [byte, -20])] }),
  'unigram, words first': unigram(
    {},
    {
      pre_tokenizer: part('Sequence', {
        pretokenizers: [part('WhitespaceSplit'), metaspace('first', true).pre_tokenizer],
      }),
    },
  ),
}).map(([name, json]) => [name, JSON.stringify(json)]);

function named<T>(
  kind: string,
  values: Record<string, T> | readonly string[],
  of: (value: T) => Json,
): Record<string, Json> {
  const entries = Array.isArray(values) ? values.map((value) => [value, value]) : Object.entries(values);
  return Object.fromEntries(entries.map(([name, value]) => [`${kind} ${name}`, of(value as T)]));
}

/** A table of SentencePiece: a double array in which every node begins at a multiple of 256, so that none are in the way of others. */
function charsmap(replacements: Record<string, string>): string {
  const encoder = new TextEncoder();
  const texts: number[] = [];
  const units = new Map<number, number>();
  let free = 256;
  const children = new Map<number, number>();
  const setOffset = (node: number, base: number, flags: number) => {
    const relative = node ^ base;
    units.set(node, (((relative >>> 8) << 10) | 0x200 | flags) >>> 0);
  };
  // the low byte of an offset counts too: nodes are at base ^ label, so bases keep the node's low byte
  const baseOf = (node: number, flags: number) => {
    if (!children.has(node)) children.set(node, free++ * 256 + (node & 0xff));
    const base = children.get(node)!;
    setOffset(node, base, flags);
    return base;
  };
  for (const [key, text] of Object.entries(replacements)) {
    let node = 0;
    const bytes = [...encoder.encode(key)];
    for (const [i, byte] of bytes.entries()) {
      const isLast = i === bytes.length - 1;
      const base = baseOf(node, node === 0 ? 0 : units.get(node)! & 0x1ff);
      node = base ^ byte;
      units.set(node, (units.get(node) ?? 0) | byte);
      if (!isLast) continue;
      const leaf = baseOf(node, byte | 0x100);
      units.set(leaf, (0x80000000 | texts.length) >>> 0);
      texts.push(...encoder.encode(text), 0);
    }
  }
  const array = new Uint32Array(free * 256);
  for (const [node, unit] of units) array[node] = unit;
  const header = new Uint32Array([array.byteLength]);
  return Buffer.concat([Buffer.from(header.buffer), Buffer.from(array.buffer), Buffer.from(texts)]).toString(
    'base64',
  );
}
