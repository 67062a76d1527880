/**
 * A tokenizer.json as GGUF metadata (llama.cpp v0.5.0: conversion/base.py, gguf-py/gguf/vocab.py). Two kinds: byte-level
 * BPE (`gpt2`), and BPE over SentencePiece's pieces with bytes to fall back on (`llama`), which llama.cpp merges by the
 * score of the merged piece; as score it gets the rank of the first merge that makes it.
 */

import { chatTemplateOf, specialTokens } from '../formats/chat-template';
import { displayName } from '../formats/names';
import { counted } from '../formats/quantity';
import { type JsonObject, type JsonValue, parseStrictJson, plainJson } from '../formats/strict-json';
import { tokenizerFault } from '../formats/tokenizer-fault';
import {
  type AddedToken,
  aroundText,
  readTokenizerJson,
  TOKENIZER_JSON_RULES,
  type TokenizerTokens,
} from '../formats/tokenizer-json';
import type { GgufValue } from './header';
import { type GgufWarning, refused } from './hyperparameters';
import { preTokenizerName } from './pre-tokenizers';

export interface TokenizerTexts {
  /** tokenizer.json, tokenizer_config.json, chat_template.jinja; absent where the output has none. */
  tokenizer?: string;
  config?: string;
  chatTemplate?: string;
}

export const NORMAL = 1;
export const UNKNOWN = 2;
export const CONTROL = 3;
export const USER_DEFINED = 4;
export const UNUSED = 5;
const BYTE = 6;

/** Score of tokens that no merge makes. */
export const UNMERGED = -1e6;

/** Of SentencePiece, for what has no other token. */
export const BYTE_TOKENS = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
);

export const SPACE = '\u2581';

/** Keys of ids and how tokenizer_config.json and config.json call them. */
export const SPECIAL = {
  bos_token_id: 'bos_token',
  eos_token_id: 'eos_token',
  unknown_token_id: 'unk_token',
  padding_token_id: 'pad_token',
  seperator_token_id: 'sep_token',
} as const;

interface GgufTokenizer {
  /** Under `tokenizer.`, one token for every row of the embedding. */
  metadata: [key: string, value: GgufValue][];
  warnings: GgufWarning[];
  /** The name of the model, by which llama.cpp knows one kind of tokenizer. */
  name: string;
}

/**
 * What the file says of the tokenizer.
 * @param rows of the embedding
 * @throws AmalgamError `GgufUnsupported` for a tokenizer llama.cpp does not have, and what parsing throws
 */
export function ggufTokenizer(
  texts: TokenizerTexts,
  rows: number,
  config: JsonObject,
  name: string,
): GgufTokenizer {
  if (texts.tokenizer === undefined)
    throw refused('A GGUF file needs a tokenizer.json, and the output has none.');
  const read = readTokenizerJson(texts.tokenizer, 'tokenizer.json');
  const fault = tokenizerFault(texts.tokenizer, 'tokenizer.json');
  if (fault !== undefined) throw refused(`The tokenizer.json of the output ${fault}.`);
  return {
    metadata: metadataOf(read, texts, rows, config),
    warnings: warningsOf(read, rows),
    name: nameOf(read, name),
  };
}

function metadataOf(
  read: TokenizerTokens,
  texts: TokenizerTexts,
  rows: number,
  config: JsonObject,
): [key: string, value: GgufValue][] {
  const kind = kindOf(read);
  let size = 0;
  for (const token of read.own) {
    if (!read.added.has(token)) size = Math.max(size, read.ids.get(token)! + 1);
  }
  if (size > rows) {
    throw refused(`The tokenizer has ids up to ${size - 1}, but the embedding has ${counted(rows, 'row')}.`);
  }
  const settings = texts.config === undefined ? {} : objectOf(texts.config, 'tokenizer_config.json');
  const named = specialTokens(settings);
  const { tokens, types } = tokenTable(read, rows, kind.model, named.unk_token);
  const special = specialIds(read, named, config, rows);
  const template = chatTemplateOf(settings, texts.chatTemplate)?.template;
  return [
    ['tokenizer.ggml.model', { type: 'text', value: kind.model }],
    ['tokenizer.ggml.pre', { type: 'text', value: kind.pre }],
    ['tokenizer.ggml.tokens', { type: 'array', of: 'text', values: tokens }],
    ...(kind.model === 'llama'
      ? entry('tokenizer.ggml.scores', { type: 'array', of: 'f32', values: scores(read, tokens) })
      : entry('tokenizer.ggml.merges', { type: 'array', of: 'text', values: read.merges })),
    ['tokenizer.ggml.token_type', { type: 'array', of: 'i32', values: types }],
    ...special,
    ...(kind.model === 'llama'
      ? entry('tokenizer.ggml.add_space_prefix', { type: 'bool', value: prependsSpace(read.rest) })
      : []),
    ...(template === undefined ? [] : entry('tokenizer.chat_template', { type: 'text', value: template })),
  ];
}

/** Forms of Unicode, which llama.cpp does not bring a text into. */
const UNICODE_FORMS: readonly unknown[] = ['NFC', 'NFD', 'NFKC', 'NFKD'];
/** What it does by itself with SentencePiece's pieces: a space in front, and spaces as ▁. */
const SPACES: readonly unknown[] = ['Prepend', 'Replace'];

/**
 * What the file leaves out: added tokens beyond the rows, and a change of the text ahead of its splitting that changes few texts.
 * @throws AmalgamError `GgufUnsupported` for a change of most texts
 */
function warningsOf(read: TokenizerTokens, rows: number): GgufWarning[] {
  const { rest, byteFallback, added } = read;
  const steps = stepsOf(rest.get('normalizer')).map((step) => step.get('type'));
  const others = steps.filter((type) => !(byteFallback && SPACES.includes(type)));
  const unknown = others.find((type) => !UNICODE_FORMS.includes(type));
  if (unknown !== undefined) {
    throw refused(`The tokenizer changes a text by ${String(unknown)} first, which llama.cpp does not.`);
  }
  const warnings: GgufWarning[] = [];
  const stripping = [...added.values()].find(({ lstrip, rstrip }) => lstrip || rstrip)?.content;
  if (stripping !== undefined && !isPhi3(read)) {
    warnings.push({
      message: `The tokenizer takes spaces beside ${displayName(stripping, 40)} away, and llama.cpp does not.`,
      remedy: 'Put no spaces beside it.',
    });
  }
  const beyond = [...added.values()].filter(({ id }) => id >= rows).map(({ content }) => content);
  if (beyond.length > 0) {
    warnings.push({
      message: `The embedding has ${counted(rows, 'row')}, and none for ${beyond.length > 1 ? `${counted(beyond.length, 'added token')}` : 'the added token'} ${displayName(beyond[0]!, 40)}${beyond.length > 1 ? ' …' : ''}: the file leaves ${beyond.length > 1 ? 'them' : 'it'} out.`,
      remedy: 'Nothing to do: the model has no values for it either.',
      isNote: true,
    });
  }
  if (others.length > 0) {
    warnings.push({
      message: `The tokenizer brings a text into the form ${others.join(', ')} first, which llama.cpp does not: there letters with separate accents get other tokens.`,
      remedy: 'Nothing to do where texts come in that form, as most do.',
    });
  }
  return warnings;
}

/**
 * The name under which llama.cpp finds the tokens that the tokenizer does: of a model with “phi-3” in its name it takes the
 * spaces behind special tokens away, as Phi-3's tokenizer does (`rstrip`), and without those it names it does not load it.
 */
function nameOf(read: TokenizerTokens, name: string): string {
  if (!isPhi3(read)) return name.replaceAll(/phi-?3/gi, 'phi 3');
  return /phi-?3/i.test(name) ? name : `${name} (phi-3)`;
}

function isPhi3({ added, ids }: TokenizerTokens): boolean {
  const named = ['</s>', '<unk>', '<s>', '<|endoftext|>'];
  return [...added.values()].some(({ rstrip }) => rstrip) && named.every((token) => ids.has(token));
}

function entry(key: string, value: GgufValue): [string, GgufValue][] {
  return [[key, value]];
}

function kindOf(read: TokenizerTokens): { model: 'gpt2' | 'llama'; pre: string } {
  if (read.type !== 'BPE')
    throw refused(`A ${read.type} tokenizer cannot be written as GGUF here, only BPE.`);
  if (read.byteFallback) {
    const missing = BYTE_TOKENS.find((byte) => !read.ids.has(byte));
    if (missing === undefined) return { model: 'llama', pre: 'default' };
    throw refused(
      `The tokenizer falls back on bytes and has no token ${missing}, without which llama.cpp ends.`,
    );
  }
  const name = preTokenizerName(read.rest.get('pre_tokenizer'));
  if (name === undefined) {
    throw refused('llama.cpp has no pre-tokenizer that splits text as this tokenizer.json does.');
  }
  // dbrx is llama-bpe where words are put together from merges even if they are tokens
  if (name === 'llama-bpe' && !read.ignoreMerges) return { model: 'gpt2', pre: 'dbrx' };
  return { model: 'gpt2', pre: name };
}

function tokenTable(
  { ids, added }: TokenizerTokens,
  rows: number,
  model: 'gpt2' | 'llama',
  unknown: string | undefined,
): { tokens: string[]; types: number[] } {
  const tokens = Array.from({ length: rows }, (_, id) => `[PAD${id}]`);
  const types = new Array<number>(rows).fill(UNUSED);
  const seen = new Map<number, string>();
  for (const [token, id] of ids) {
    if (id >= rows) continue;
    const other = seen.get(id);
    if (other !== undefined) {
      throw refused(
        `The tokenizer gives two tokens the id ${id}, “${displayName(other, 40)}” and “${displayName(token, 40)}”.`,
      );
    }
    seen.set(id, token);
    const extra = added.get(token);
    const isUnknown = model === 'llama' && token === (unknown ?? '<unk>');
    const isByte = model === 'llama' && /^<0x[0-9A-F]{2}>$/.test(token);
    types[id] = isUnknown ? UNKNOWN : isByte ? BYTE : extra ? addedType(extra) : NORMAL;
    tokens[id] = types[id] === USER_DEFINED ? token.replaceAll(SPACE, ' ') : token;
  }
  return { tokens, types };
}

/** Some models do not mark their control tokens; llama.cpp's converter knows these by their looks. */
function addedType({ content, special }: AddedToken): number {
  const looksSpecial = /^<\|.*\|>$|^<｜.*｜>$|^<unused.*>$|^<pad>$|^<mask>$|^<2mass>$|^\[@BOS@\]$/.test(
    content,
  );
  return special || looksSpecial ? CONTROL : USER_DEFINED;
}

function scores({ merges }: TokenizerTokens, tokens: readonly string[]): number[] {
  const ranks = new Map<string, number>();
  for (const [rank, merge] of merges.entries()) {
    const merged = merge.replace(' ', '');
    if (!ranks.has(merged)) ranks.set(merged, rank);
  }
  return tokens.map((token) => (ranks.has(token) ? -ranks.get(token)! : UNMERGED));
}

/**
 * Ids of tokens with a meaning, and whether one is put in front of a text and behind it. What llama.cpp puts there is its BOS
 * and its EOS: the ids are those that the post-processor puts there, whatever the settings call so.
 */
function specialIds(
  { ids, rest }: TokenizerTokens,
  named: Readonly<Record<string, string>>,
  config: JsonObject,
  rows: number,
): [string, GgufValue][] {
  const found = new Map(
    Object.entries(SPECIAL).flatMap(([key, name]): [string, number][] => {
      const token = named[name];
      const id = (token === undefined ? undefined : ids.get(token)) ?? firstNumber(config.get(`${name}_id`));
      return id === undefined || id >= rows ? [] : [[key, id]];
    }),
  );
  const { ahead, behind } = aroundText(plainJson(rest.get('post_processor') ?? null));
  if (ahead.length > 1) throw refused(`llama.cpp puts one token in front of a text, not ${ahead.length}.`);
  const end = found.get('eos_token_id') ?? behind[0];
  if (behind.some((id) => id !== end) || behind.length > 1) {
    throw refused('llama.cpp puts only the end-of-text token behind a text, and this tokenizer another.');
  }
  const beyond = [...ahead, ...behind].find((id) => id >= rows);
  if (beyond !== undefined) {
    throw refused(
      `The tokenizer puts token ${beyond} around every text, and the embedding has ${counted(rows, 'row')}.`,
    );
  }
  if (ahead[0] !== undefined) found.set('bos_token_id', ahead[0]);
  if (end !== undefined) found.set('eos_token_id', end);
  return [
    ...[...found].flatMap(([key, value]) => entry(`tokenizer.ggml.${key}`, { type: 'u32', value })),
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: ahead.length > 0 }],
    ['tokenizer.ggml.add_eos_token', { type: 'bool', value: behind.length > 0 }],
  ];
}

function stepsOf(processor: JsonValue | undefined): JsonObject[] {
  if (!(processor instanceof Map)) return [];
  const parts = processor.get('processors') ?? processor.get('normalizers');
  if (!Array.isArray(parts)) return [processor];
  return parts.flatMap((part) => stepsOf(part));
}

/** Whether a text is read as if a space stood in front. */
function prependsSpace(rest: JsonObject): boolean {
  const splitter = rest.get('pre_tokenizer');
  const metaspace = stepsOf(splitter).find((step) => step.get('type') === 'Metaspace');
  if (metaspace)
    return metaspace.get('prepend_scheme') !== 'never' && metaspace.get('add_prefix_space') !== false;
  return stepsOf(rest.get('normalizer')).some((step) => step.get('type') === 'Prepend');
}

function firstNumber(value: JsonValue | undefined): number | undefined {
  const first = Array.isArray(value) ? value[0] : value;
  if (typeof first !== 'object' || first === null || !('text' in first)) return undefined;
  const number = Number(first.text);
  return Number.isInteger(number) && number >= 0 ? number : undefined;
}

function objectOf(text: string, fileName: string): Record<string, unknown> {
  const value = parseStrictJson(text, fileName, TOKENIZER_JSON_RULES);
  return value instanceof Map ? (plainJson(value) as Record<string, unknown>) : {};
}
