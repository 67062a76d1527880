/** What a tokenizer.json says about its tokens: which id each has, which are added, and how text is split into them. */
import { AmalgamError } from '../errors';
import { displayName } from './names';
import {
  isJsonNumber,
  type JsonObject,
  type JsonRules,
  type JsonValue,
  MAX_JSON_LENGTH,
  parseStrictJson,
  strictInteger,
} from './strict-json';

export const TOKENIZER_JSON_RULES: JsonRules = {
  code: 'JsonInvalid',
  maxLength: MAX_JSON_LENGTH,
  maxString: MAX_JSON_LENGTH,
};

/** Most ids of a vocabulary: the largest have 262 144. Lists by id are made as long as the highest one says. */
export const MAX_TOKENS = 2 ** 22;

/** A token beside the model's own: never split, found in the text before anything else happens to it. */
export interface AddedToken {
  id: number;
  content: string;
  singleWord: boolean;
  lstrip: boolean;
  rstrip: boolean;
  normalized: boolean;
  special: boolean;
}

export interface TokenizerTokens {
  /** `BPE`, `Unigram`, `WordPiece`, `WordLevel`; the form of its vocabulary where the file does not say. */
  type: string;
  /** Every token, added ones included → id. */
  ids: ReadonlyMap<string, number>;
  /** Tokens of the model itself, in the order of the file. */
  own: ReadonlySet<string>;
  /** Added tokens by their text. */
  added: ReadonlyMap<string, AddedToken>;
  /** Added tokens that the file gives another id than they have: see {@link readTokenizerJson}. */
  renumbered: ReadonlyMap<string, number>;
  /** BPE: pairs in order of precedence, `a b`. */
  merges: readonly string[];
  /** BPE: characters without a token are written as bytes (`<0x0A>`), as SentencePiece does. */
  byteFallback: boolean;
  /** BPE: a word that is a token is not put together from merges. */
  ignoreMerges: boolean;
  /** Unigram: token → log probability, as written. */
  scores: ReadonlyMap<string, string>;
  /** Everything else at the top: normalizer, pre_tokenizer, post_processor, decoder, … */
  rest: JsonObject;
}

/**
 * Reads a tokenizer.json. A file without a model has no tokens. Added tokens have the ids that the library gives them which
 * reads the file for transformers and llama.cpp's converter (tokenizers, added_vocabulary.rs): that of the model's own token,
 * else the next one behind as many as the model has, whatever the file says, so that a hole among its ids moves them.
 * @throws AmalgamError `JsonInvalid`, `DuplicateKey`, `LimitExceeded`, `TokenizerInvalid` (an id that is no integer, a token
 * that no text has)
 */
export function readTokenizerJson(text: string, fileName: string): TokenizerTokens {
  const json = parseStrictJson(text, fileName, TOKENIZER_JSON_RULES);
  const top: JsonObject = json instanceof Map ? json : new Map();
  const model = top.get('model');
  const fields: JsonObject = model instanceof Map ? model : new Map();
  const ids = new Map<string, number>();
  const scores = new Map<string, string>();
  const vocabulary = fields.get('vocab');
  if (vocabulary instanceof Map) {
    for (const [token, id] of vocabulary) ids.set(token, idOf(id, token, fileName));
  } else if (Array.isArray(vocabulary)) {
    for (const [id, entry] of vocabulary.entries()) {
      if (!Array.isArray(entry) || typeof entry[0] !== 'string') continue;
      ids.set(entry[0], id);
      if (isJsonNumber(entry[1])) scores.set(entry[0], entry[1].text);
    }
  }
  const own = new Set(ids.keys());
  const added = new Map<string, AddedToken>();
  const renumbered = new Map<string, number>();
  let next = own.size;
  for (const entry of listOf(top.get('added_tokens'))) {
    if (!(entry instanceof Map)) continue;
    const content = entry.get('content');
    if (typeof content !== 'string' || content === '') continue;
    const said = idOf(entry.get('id'), content, fileName);
    const id = own.size === 0 ? said : (ids.get(content) ?? next++);
    if (id !== said) renumbered.set(content, said);
    ids.set(content, id);
    const flag = (name: string) => entry.get(name) === true;
    added.set(content, {
      id,
      content,
      singleWord: flag('single_word'),
      lstrip: flag('lstrip'),
      rstrip: flag('rstrip'),
      normalized: flag('normalized'),
      special: flag('special'),
    });
  }
  for (const token of ids.keys()) {
    if (token.isWellFormed()) continue;
    throw new AmalgamError(
      'TokenizerInvalid',
      `${displayName(fileName)}: the token “${displayName(token, 40)}” contains half of a surrogate pair.`,
      'Download the file again, or use the tokenizer of the base model.',
    );
  }
  const type = fields.get('type');
  return {
    type: typeof type === 'string' ? type : Array.isArray(vocabulary) ? 'Unigram' : 'BPE',
    ids,
    own,
    added,
    renumbered,
    // newer files write a merge as a pair, older ones as a text
    merges: listOf(fields.get('merges')).map((m) => (Array.isArray(m) ? m.join(' ') : String(m))),
    byteFallback: fields.get('byte_fallback') === true,
    ignoreMerges: fields.get('ignore_merges') === true,
    scores,
    rest: new Map([...top].filter(([key]) => key !== 'model' && key !== 'added_tokens')),
  };
}

function itemsOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function shown(value: unknown): string {
  return displayName(typeof value === 'string' ? value : String(JSON.stringify(value)), 40);
}

/**
 * Ids that a post-processor puts around a text: the only ones there are. transformers 5.18 does not read `add_bos_token` and
 * `add_eos_token` of a config beside a tokenizer.json.
 * @param processor `post_processor` of a tokenizer.json
 * @throws AmalgamError `TokenizerUnsupported` for one of another type, or that names a token without its id
 */
export function aroundText(processor: unknown): { ahead: number[]; behind: number[] } {
  const { type, processors, single, special_tokens, cls, sep } = Object(processor) as Record<string, unknown>;
  const ids = (value: unknown) => itemsOf(value).filter((id) => typeof id === 'number');
  switch (type) {
    case 'Sequence': {
      const around = itemsOf(processors).map(aroundText);
      return {
        ahead: around.toReversed().flatMap(({ ahead }) => ahead),
        behind: around.flatMap(({ behind }) => behind),
      };
    }
    case 'BertProcessing':
    case 'RobertaProcessing':
      return { ahead: ids(cls), behind: ids(sep) };
    case 'TemplateProcessing': {
      const parts = itemsOf(single).map(
        (part) => Object(part) as { Sequence?: unknown; SpecialToken?: unknown },
      );
      const at = parts.findIndex((part) => part.Sequence);
      const tokens = Object(special_tokens) as Record<string, unknown>;
      const idsOf = (some: typeof parts) =>
        some.flatMap((part) => {
          const { id } = Object(part.SpecialToken) as { id?: string };
          if (id === undefined) return [];
          const found = ids((Object(tokens[id]) as { ids?: unknown }).ids);
          if (found.length === 0) throw unknownAround(`names the token “${shown(id)}” without its id`);
          return found;
        });
      return { ahead: idsOf(parts.slice(0, Math.max(at, 0))), behind: idsOf(parts.slice(at + 1)) };
    }
    case 'ByteLevel':
    case undefined:
      return { ahead: [], behind: [] };
    default:
      throw unknownAround(`is ${shown(type)}, which is not known here`);
  }
}

/** A stretch of what a post-processor makes of two texts: tokens of its own or one of the texts, and the kind of text it counts as. */
export type PairPiece = { type: number } & ({ ids: readonly number[] } | { text: 0 | 1 });

/**
 * What a post-processor makes of two texts, in its order (tokenizers, processors/*.rs).
 * @param processor `post_processor` of a tokenizer.json
 * @returns undefined for a processor whose form for two texts is not known
 */
export function aroundPair(processor: unknown): PairPiece[] | undefined {
  const { type, processors, pair, special_tokens, cls, sep } = Object(processor) as Record<string, unknown>;
  const special = (token: unknown, kind = 0) => ({
    ids: itemsOf(token).filter((id) => typeof id === 'number'),
    type: kind,
  });
  const first = { text: 0, type: 0 } as const;
  switch (type) {
    case 'Sequence': {
      const those = itemsOf(processors).filter(
        (one) => (Object(one) as { type?: unknown }).type !== 'ByteLevel',
      );
      return those.length > 1 ? undefined : aroundPair(those[0]);
    }
    case 'BertProcessing':
      return [special(cls), first, special(sep), { text: 1, type: 1 }, special(sep, 1)];
    case 'RobertaProcessing':
      return [special(cls), first, special(sep), special(sep), { text: 1, type: 0 }, special(sep)];
    case 'TemplateProcessing': {
      const tokens = Object(special_tokens) as Record<string, unknown>;
      const pieces = itemsOf(pair).map((part): PairPiece => {
        const { Sequence, SpecialToken } = Object(part) as Record<string, { id: string; type_id: number }>;
        if (Sequence) return { text: Sequence.id === 'A' ? 0 : 1, type: Sequence.type_id };
        const { id, type_id } = SpecialToken!;
        return special((Object(tokens[id]) as { ids?: unknown }).ids, type_id);
      });
      const texts = pieces.flatMap((piece) => ('text' in piece ? piece.text : []));
      return texts.includes(0) && texts.includes(1) && texts.length === 2 ? pieces : undefined;
    }
    case 'ByteLevel':
    case undefined:
      return [first, { text: 1, type: 1 }];
    default:
      return undefined;
  }
}

function unknownAround(why: string): AmalgamError {
  return new AmalgamError(
    'TokenizerUnsupported',
    `The post-processor in tokenizer.json ${why}.`,
    'Use the tokenizer.json of another repo of the same family, or give token ids instead of text.',
  );
}

function idOf(value: JsonValue | undefined, token: string, fileName: string): number {
  const id = isJsonNumber(value) ? strictInteger(value.text) : undefined;
  if (id !== undefined && id < MAX_TOKENS) return id;
  throw new AmalgamError(
    'TokenizerInvalid',
    `${displayName(fileName)}: the token “${displayName(token, 40)}” has no id that is a whole number below ${MAX_TOKENS}.`,
    'Download the file again, or use the tokenizer of the base model.',
  );
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

// Two vocabularies side by side: tokens that only one has, and tokens under other ids.

interface TokenSample {
  count: number;
  /** The first few. */
  examples: string[];
}

export interface TokenDifference {
  onlyInFirst: TokenSample;
  onlyInSecond: TokenSample;
  /** In both, under another id. */
  moved: TokenSample;
}

const EXAMPLES = 8;

/** How the second vocabulary (token → id) differs from the first. */
export function tokenDifference(
  first: ReadonlyMap<string, number>,
  second: ReadonlyMap<string, number>,
): TokenDifference {
  const lacking = (from: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>) =>
    sample([...from.keys()].filter((token) => !other.has(token)));
  return {
    onlyInFirst: lacking(first, second),
    onlyInSecond: lacking(second, first),
    moved: sample([...first].filter(([token, id]) => (second.get(token) ?? id) !== id).map(([t]) => t)),
  };
}

/** The same in sentences, with a name for each side (“the base”); none where the two agree. */
export function tokenDifferenceWords(difference: TokenDifference, first: string, second: string): string[] {
  const words: string[] = [];
  const say = ({ count, examples }: TokenSample, one: string, many: string) => {
    if (count === 0) return;
    const end = count > examples.length ? ' …' : '.';
    const names = examples.map((token) => `“${displayName(token, 40)}”`).join(', ');
    words.push(`${count === 1 ? one : `${count} ${many}`}: ${names}${end}`);
  };
  say(difference.onlyInFirst, `One token is in ${first} only`, `tokens are in ${first} only`);
  say(difference.onlyInSecond, `One token is in ${second} only`, `tokens are in ${second} only`);
  say(
    difference.moved,
    `One token has a different id in ${second}`,
    `tokens have a different id in ${second}`,
  );
  return words;
}

function sample(tokens: string[]): TokenSample {
  return { count: tokens.length, examples: tokens.slice(0, EXAMPLES) };
}
