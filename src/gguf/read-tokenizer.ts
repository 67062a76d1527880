/**
 * The tokenizer of a GGUF file as tokenizer.json and tokenizer_config.json: tokenizer.ts the other way. Where llama.cpp merges
 * pieces by their scores, a merge stands for every two pieces that make a third, those of the highest score first (transformers
 * does so too, convert_slow_tokenizer.py, generate_merges).
 */
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { MAX_TOKENS } from '../formats/tokenizer-json';
import { BYTE_LEVEL, preTokenizerBy } from './pre-tokenizers';
import type { StoredModel } from './read-config';
import { CONTROL, NORMAL, SPACE, SPECIAL, UNKNOWN, UNMERGED, UNUSED, USER_DEFINED } from './tokenizer';

export interface ReadTokenizer {
  /** tokenizer.json and tokenizer_config.json. */
  tokenizer: string;
  config: string;
}

type Metadata = StoredModel['metadata'];

/** @throws AmalgamError `TokenizerUnsupported` for one that is not known here: what it would split is not guessed */
export function ggufTokenizerTexts({ metadata, fileName }: StoredModel): ReadTokenizer {
  const refuse = (why: string) =>
    new AmalgamError(
      'TokenizerUnsupported',
      `The tokenizer in ${displayName(fileName)} ${why}.`,
      'Put the tokenizer.json of the model that it was made of beside the file: it is taken then.',
    );
  const kind = metadata.get('tokenizer.ggml.model');
  const tokens = listOf(metadata, 'tokens', isText);
  if (tokens.length === 0 || tokens.length > MAX_TOKENS) throw refuse('has no list of tokens');
  if (new Set(tokens).size < tokens.length) throw refuse('has a token twice');
  const types = listOf(metadata, 'token_type', isNumber);
  const table = { tokens, typeOf: (id: number) => types[id] ?? NORMAL };
  const special = specialOf(metadata, tokens, kind === 'llama');
  if (kind === 'gpt2') {
    const pre = String(metadata.get('tokenizer.ggml.pre') ?? 'default');
    const rules = preTokenizerBy(pre);
    if (!rules) throw refuse(`splits text as “${displayName(pre)}” does, which is not known here`);
    return texts(metadata, table, special, {
      ...{ isFirst: rules.hasFirst, merges: listOf(metadata, 'merges', isText), strips: false },
      top: { normalizer: null, pre_tokenizer: rules.preTokenizer, decoder: BYTE_LEVEL },
      model: { byte_fallback: false, ignore_merges: rules.ignoreMerges },
    });
  }
  if (kind !== 'llama') throw refuse(`is of a kind that is not read (${displayName(String(kind))})`);
  const scores = listOf(metadata, 'scores', isNumber);
  if (scores.length !== tokens.length) throw refuse('has no scores');
  const isSpaced = metadata.get('tokenizer.ggml.add_space_prefix') !== false;
  const spaces = { type: 'Replace', pattern: { String: ' ' }, content: SPACE };
  const prepend = { type: 'Prepend', prepend: SPACE };
  const bytes = [{ type: 'Replace', pattern: { String: SPACE }, content: ' ' }, { type: 'ByteFallback' }];
  return texts(metadata, table, special, {
    ...{ isFirst: true, merges: mergesOf(table, scores) },
    strips: /phi-?3/i.test(String(metadata.get('general.name'))),
    top: {
      normalizer: isSpaced ? { type: 'Sequence', normalizers: [prepend, spaces] } : spaces,
      pre_tokenizer: null,
      decoder: {
        type: 'Sequence',
        decoders: [
          ...[...bytes, { type: 'Fuse' }],
          ...(isSpaced ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
        ],
      },
    },
    model: {
      unk_token: special.unk_token ?? null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
    },
  });
}

interface TokenTable {
  tokens: readonly string[];
  typeOf(id: number): number;
}

interface Parts {
  /** Whether a token stands in front of a text where the file does not say. */
  isFirst: boolean;
  merges: readonly string[];
  /** Spaces behind special tokens go, as llama.cpp has it for Phi-3. */
  strips: boolean;
  top: Record<string, unknown>;
  model: Record<string, unknown>;
}

function texts(
  metadata: Metadata,
  { tokens, typeOf }: TokenTable,
  special: Readonly<Record<string, string>>,
  { isFirst, merges, strips, top, model }: Parts,
): ReadTokenizer {
  // rows behind the last token have none
  let size = tokens.length;
  while (size > 0 && typeOf(size - 1) === UNUSED && tokens[size - 1] === `[PAD${size - 1}]`) size--;
  const added = tokens.slice(0, size).flatMap((content, id) => {
    const type = typeOf(id);
    if (type !== CONTROL && type !== USER_DEFINED && type !== UNKNOWN) return [];
    const rstrip = strips && type === CONTROL && !['<s>', '<unk>', '<|endoftext|>'].includes(content);
    const flags = { single_word: false, lstrip: false, rstrip, normalized: false };
    return [{ id, content, ...flags, special: type !== USER_DEFINED }];
  });
  const puts = (key: string, orElse: boolean) => (metadata.get(`tokenizer.ggml.${key}`) ?? orElse) === true;
  const [first, last] = [puts('add_bos_token', isFirst), puts('add_eos_token', false)];
  const around = (isThere: boolean, token: string | undefined) =>
    isThere && token !== undefined ? [{ SpecialToken: { id: token, type_id: 0 } }] : [];
  const single = [
    ...around(first, special.bos_token),
    { Sequence: { id: 'A', type_id: 0 } },
    ...around(last, special.eos_token),
  ];
  const named = [special.bos_token, special.eos_token].filter((token) => token !== undefined);
  const processor = {
    ...{ type: 'TemplateProcessing', single, pair: [...single, { Sequence: { id: 'B', type_id: 1 } }] },
    special_tokens: Object.fromEntries(
      named.map((token) => [token, { id: token, ids: [tokens.indexOf(token)], tokens: [token] }]),
    ),
  };
  const vocab = Object.fromEntries(tokens.slice(0, size).map((token, id) => [token, id]));
  const template = metadata.get('tokenizer.chat_template');
  return {
    tokenizer: JSON.stringify({
      ...{ version: '1.0', truncation: null, padding: null, added_tokens: added, ...top },
      post_processor: single.length > 1 ? processor : null,
      model: { type: 'BPE', dropout: null, ...model, vocab, merges },
    }),
    config: `${JSON.stringify(
      {
        ...{ tokenizer_class: 'PreTrainedTokenizerFast', clean_up_tokenization_spaces: false, ...special },
        ...{ add_bos_token: first, add_eos_token: last },
        ...(typeof template === 'string' && { chat_template: template }),
      },
      null,
      2,
    )}\n`,
  };
}

/** Tokens with a meaning, by their names in tokenizer_config.json. @param isPieces whether those of SentencePiece are meant where none is named */
function specialOf(metadata: Metadata, tokens: readonly string[], isPieces: boolean): Record<string, string> {
  const usual: Record<string, number> = isPieces
    ? { bos_token_id: 1, eos_token_id: 2, unknown_token_id: 0 }
    : {};
  const found: Record<string, string> = {};
  for (const [key, name] of Object.entries(SPECIAL)) {
    const id = metadata.get(`tokenizer.ggml.${key}`) ?? usual[key];
    const token = typeof id === 'number' ? tokens[id] : undefined;
    if (token !== undefined) found[name] = token;
  }
  return found;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';

/** A list of one type of values; empty where there is none such. */
function listOf<T>(metadata: Metadata, key: string, isOne: (value: unknown) => value is T): readonly T[] {
  const list: unknown = metadata.get(`tokenizer.ggml.${key}`);
  return Array.isArray(list) && list.every(isOne) ? list : [];
}

/** Pairs of pieces that make a piece, by its score; those of one piece in the order of their ids. */
function mergesOf({ tokens, typeOf }: TokenTable, scores: readonly number[]): string[] {
  const ids = new Map<string, number>();
  for (const [id, token] of tokens.entries()) if (typeOf(id) === NORMAL) ids.set(token, id);
  const merges: [score: number, made: number, left: number, right: number][] = [];
  for (const [piece, id] of ids) {
    if (!(scores[id]! > UNMERGED)) continue;
    for (let cut = 1; cut < piece.length; cut++) {
      const [left, right] = [ids.get(piece.slice(0, cut)), ids.get(piece.slice(cut))];
      if (left !== undefined && right !== undefined) merges.push([scores[id]!, id, left, right]);
    }
  }
  merges.sort((a, b) => b[0] - a[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]);
  return merges.map(([, , left, right]) => `${tokens[left]!} ${tokens[right]!}`);
}
