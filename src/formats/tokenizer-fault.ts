/** What is wrong with a tokenizer.json, by what each of its components must hold. */
import { displayName } from './names';
import {
  isJsonNumber,
  type JsonObject,
  type JsonValue,
  parseStrictJson,
  plainJson,
  strictInteger,
} from './strict-json';
import { MAX_TOKENS, TOKENIZER_JSON_RULES } from './tokenizer-json';

/** What a field of a component may hold. */
interface Kind {
  /** Behind "is not". */
  words: string;
  has(value: JsonValue | undefined): boolean;
}
export type Fields = Readonly<Record<string, Kind>>;

export const kind = (words: string, has: Kind['has']): Kind => ({ words, has });
const isText = (value: JsonValue | undefined) => typeof value === 'string';
const isWhole = (value: JsonValue | undefined) =>
  isJsonNumber(value) && strictInteger(value.text) !== undefined;
const TEXT = kind('a text', isText);
const CHARACTER = kind('one character', (value) => isText(value) && Array.from(value as string).length === 1);
export const BOOLEAN = kind('true or false', (value) => typeof value === 'boolean');
const WHOLE = kind('a whole number', isWhole);
export const ID = kind(
  `an id below ${MAX_TOKENS}`,
  (id) => isJsonNumber(id) && (strictInteger(id.text) ?? MAX_TOKENS) < MAX_TOKENS,
);
const PROBABILITY = kind(
  'a number from 0 to 1',
  (value) => isJsonNumber(value) && Number(value.text) >= 0 && Number(value.text) <= 1,
);
const oneOf = (...names: string[]) =>
  kind(`one of ${names.join(', ')}`, (value) => names.includes(value as string));
/** May be left out. */
const optional = ({ words, has }: Kind) => kind(words, (value) => value === undefined || has(value));
/** May be null or left out. */
export const maybe = (one: Kind) => optional(kind(one.words, (value) => value === null || one.has(value)));
const listOf = (item: Kind) =>
  kind(`a list, of ${item.words} each`, (value) => Array.isArray(value) && value.every(item.has));
const pairOf = (...kinds: Kind[]) =>
  kind(
    `a pair of ${kinds.map(({ words }) => words).join(' and ')}`,
    (value) =>
      Array.isArray(value) && value.length === kinds.length && kinds.every(({ has }, i) => has(value[i])),
  );
const objectOf = (fields: Fields) =>
  kind(
    `an object with ${Object.keys(fields).join(', ')}`,
    (value) =>
      value instanceof Map && Object.entries(fields).every(([name, { has }]) => has(value.get(name))),
  );
export const mapOf = (item: Kind) =>
  kind(
    `an object, of ${item.words} each`,
    (value) => value instanceof Map && [...value.values()].every(item.has),
  );
/** One of several, under its name. */
const variant = (fields: Fields) =>
  kind(`an object with ${Object.keys(fields).join(' or ')}`, (value) => {
    if (!(value instanceof Map) || value.size !== 1) return false;
    const [[name, content]] = value as unknown as [[string, JsonValue]];
    return Object.hasOwn(fields, name) && fields[name]!.has(content);
  });

const PATTERN = variant({ String: TEXT, Regex: TEXT });
const REPLACE = { pattern: PATTERN, content: TEXT };
const BYTE_LEVEL = { add_prefix_space: BOOLEAN, trim_offsets: BOOLEAN, use_regex: optional(BOOLEAN) };
const METASPACE = {
  replacement: CHARACTER,
  add_prefix_space: maybe(BOOLEAN),
  prepend_scheme: optional(oneOf('first', 'never', 'always')),
  split: maybe(BOOLEAN),
};
const BEHAVIOR = oneOf('Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous');
const PIECES = listOf(
  variant({
    Sequence: objectOf({ id: oneOf('A', 'B'), type_id: WHOLE }),
    SpecialToken: objectOf({ id: TEXT, type_id: WHOLE }),
  }),
);
const AROUND = { sep: pairOf(TEXT, ID), cls: pairOf(TEXT, ID) };
const SUBWORD = {
  unk_token: TEXT,
  continuing_subword_prefix: TEXT,
  max_input_chars_per_word: WHOLE,
};
const DIRECTION = oneOf('Left', 'Right');

/** Fields of the components as tokenizers 0.23 reads them, by place and type; types and fields that are not here are not looked at. */
const COMPONENTS: Readonly<Record<string, Readonly<Record<string, Fields>>>> = {
  normalizer: {
    BertNormalizer: {
      clean_text: BOOLEAN,
      handle_chinese_chars: BOOLEAN,
      strip_accents: maybe(BOOLEAN),
      lowercase: BOOLEAN,
    },
    Strip: { strip_left: BOOLEAN, strip_right: BOOLEAN },
    Precompiled: { precompiled_charsmap: TEXT },
    Replace: REPLACE,
    Prepend: { prepend: TEXT },
  },
  pre_tokenizer: {
    ByteLevel: BYTE_LEVEL,
    CharDelimiterSplit: { delimiter: CHARACTER },
    Metaspace: METASPACE,
    Split: { pattern: PATTERN, behavior: BEHAVIOR, invert: BOOLEAN },
    Punctuation: { behavior: optional(BEHAVIOR) },
    Digits: { individual_digits: BOOLEAN },
    FixedLength: { length: optional(WHOLE) },
  },
  post_processor: {
    RobertaProcessing: AROUND,
    BertProcessing: AROUND,
    ByteLevel: BYTE_LEVEL,
    TemplateProcessing: {
      single: PIECES,
      pair: PIECES,
      special_tokens: mapOf(objectOf({ id: TEXT, ids: listOf(ID), tokens: listOf(TEXT) })),
    },
  },
  decoder: {
    BPEDecoder: { suffix: TEXT },
    ByteLevel: BYTE_LEVEL,
    WordPiece: { prefix: TEXT, cleanup: BOOLEAN },
    Metaspace: METASPACE,
    CTC: { pad_token: TEXT, word_delimiter_token: TEXT, cleanup: BOOLEAN },
    Replace: REPLACE,
    Strip: { content: CHARACTER, start: WHOLE, stop: WHOLE },
  },
  model: {
    BPE: {
      dropout: maybe(PROBABILITY),
      unk_token: maybe(TEXT),
      continuing_subword_prefix: maybe(TEXT),
      end_of_word_suffix: maybe(TEXT),
      fuse_unk: maybe(BOOLEAN),
      byte_fallback: maybe(BOOLEAN),
      ignore_merges: maybe(BOOLEAN),
    },
    WordPiece: SUBWORD,
    WordLevel: { unk_token: TEXT },
    Unigram: { unk_id: maybe(ID), byte_fallback: optional(BOOLEAN) },
  },
};
/** Components in a component of the type `Sequence`. */
const STEPS: Readonly<Record<string, string>> = {
  normalizer: 'normalizers',
  pre_tokenizer: 'pretokenizers',
  post_processor: 'processors',
  decoder: 'decoders',
};
const TOP: Fields = {
  version: optional(oneOf('1.0')),
  added_tokens: optional(kind('a list', Array.isArray)),
  truncation: maybe(
    objectOf({
      direction: optional(DIRECTION),
      max_length: WHOLE,
      strategy: oneOf('LongestFirst', 'OnlyFirst', 'OnlySecond'),
      stride: WHOLE,
    }),
  ),
  padding: maybe(
    objectOf({
      strategy: kind(
        'a strategy',
        (value) => value === 'BatchLongest' || variant({ Fixed: WHOLE }).has(value),
      ),
      direction: DIRECTION,
      pad_to_multiple_of: maybe(WHOLE),
      pad_id: WHOLE,
      pad_type_id: WHOLE,
      pad_token: TEXT,
    }),
  ),
};
const ADDED: Fields = {
  id: ID,
  content: TEXT,
  single_word: BOOLEAN,
  lstrip: BOOLEAN,
  rstrip: BOOLEAN,
  normalized: BOOLEAN,
  special: BOOLEAN,
};

/**
 * What keeps the library that transformers loads a tokenizer.json with (tokenizers 0.23) from reading this one, in words that
 * go behind its name; undefined where its fields, tokens, ids and merges agree.
 * @throws AmalgamError as {@link parseStrictJson}
 */
export function tokenizerFault(text: string, fileName: string): string | undefined {
  const json = parseStrictJson(text, fileName, TOKENIZER_JSON_RULES);
  const top: JsonObject = json instanceof Map ? json : new Map();
  const model = top.get('model');
  const vocab = model instanceof Map ? model.get('vocab') : undefined;
  if (!(model instanceof Map) || !(vocab instanceof Map || Array.isArray(vocab)))
    return 'has no vocabulary (model.vocab)';
  const type = model.get('type');
  if (type !== undefined && typeof type !== 'string') return 'has a model that is none: its type is no text';
  if (Array.isArray(vocab) !== (type === undefined ? Array.isArray(vocab) : type === 'Unigram'))
    return `has a vocabulary (model.vocab) that is none of ${type}`;
  const merges = model.get('merges');
  const isBpe = type === 'BPE' || (type === undefined && vocab instanceof Map && merges !== undefined);
  return (
    fieldsFault(top, TOP, 'its') ??
    Object.keys(STEPS)
      .map((name) => partFault(top.get(name), name))
      .find((why) => why !== undefined) ??
    addedFault((top.get('added_tokens') as JsonValue[] | undefined) ?? []) ??
    fieldsFault(
      model,
      COMPONENTS.model![isBpe ? 'BPE' : (type ?? (Array.isArray(vocab) ? 'Unigram' : ''))] ?? {},
      'the model’s',
    ) ??
    vocabularyFault(vocab, model.get('unk_id')) ??
    (isBpe && vocab instanceof Map
      ? mergesFault(vocab, merges, model.get('continuing_subword_prefix'))
      : undefined)
  );
}

/** The first field that holds something else than it may. @param whose `its`, `the decoder Strip’s` */
export function fieldsFault(object: JsonObject, fields: Fields, whose: string): string | undefined {
  const wrong = Object.keys(fields).find((name) => !fields[name]!.has(object.get(name)));
  if (wrong === undefined) return undefined;
  return `cannot be read: ${whose} ${wrong} is not ${fields[wrong]!.words}`;
}

function partFault(part: JsonValue | undefined, place: string): string | undefined {
  if (part === null || part === undefined) return undefined;
  const type = part instanceof Map ? part.get('type') : undefined;
  if (!(part instanceof Map) || typeof type !== 'string')
    return `has a ${place} that is none: it names no type`;
  const whose = `the ${place} ${shown(type)}’s`;
  if (type === 'Sequence') {
    const steps = part.get(STEPS[place]!);
    if (!Array.isArray(steps)) return `cannot be read: ${whose} ${STEPS[place]} are no list`;
    return steps.map((step) => partFault(step ?? [], place)).find((why) => why !== undefined);
  }
  if (
    type === 'Metaspace' &&
    part.get('add_prefix_space') === false &&
    part.get('prepend_scheme') !== 'never'
  )
    return `cannot be read: ${whose} add_prefix_space is false, and its prepend_scheme is not never`;
  return fieldsFault(part, COMPONENTS[place]![type] ?? {}, whose);
}

function addedFault(tokens: readonly JsonValue[]): string | undefined {
  for (const token of tokens) {
    if (!(token instanceof Map)) return `has an added token that is none: “${shown(token)}”`;
    const why = fieldsFault(token, ADDED, `the added token “${shown(token.get('content'))}”’s`);
    if (why !== undefined) return why;
  }
  return undefined;
}

function vocabularyFault(
  vocab: JsonObject | JsonValue[],
  unknown: JsonValue | undefined,
): string | undefined {
  if (vocab instanceof Map) {
    for (const [token, id] of vocab)
      if (!ID.has(id)) return `gives the token “${shown(token)}” no id below ${MAX_TOKENS}`;
    return undefined;
  }
  const entry = pairOf(TEXT, kind('a score', isJsonNumber));
  const wrong = vocab.find((each) => !entry.has(each));
  if (wrong !== undefined) return `has an entry that is no token with a score: “${shown(wrong)}”`;
  const isThere = !isJsonNumber(unknown) || Number(unknown.text) < vocab.length;
  return isThere ? undefined : 'names a token for unknown characters (unk_id) that it has not';
}

/** A merge names two tokens, and makes one that is there (tokenizers, models/bpe/model.rs, `BpeBuilder::build`). */
function mergesFault(
  tokens: JsonObject,
  merges: JsonValue | undefined,
  prefix: JsonValue | undefined,
): string | undefined {
  if (!Array.isArray(merges)) return 'has no list of merges (model.merges)';
  const begin = typeof prefix === 'string' ? prefix.length : 0;
  for (const merge of merges) {
    if (typeof merge === 'string' && merge.startsWith('#version')) continue;
    const pair = typeof merge === 'string' ? merge.split(' ') : merge;
    const [a, b] = Array.isArray(pair) ? pair : [];
    if (!Array.isArray(pair) || pair.length !== 2 || typeof a !== 'string' || typeof b !== 'string')
      return `has a merge that is no pair of tokens: “${shown(merge)}”`;
    const missing = [a, b, a + b.slice(begin)].find((token) => !tokens.has(token));
    if (missing !== undefined) return `has a merge with a token that it has not: “${shown(missing)}”`;
  }
  return undefined;
}

function shown(value: JsonValue | undefined): string {
  return displayName(typeof value === 'string' ? value : JSON.stringify(plainJson(value ?? null)), 40);
}
