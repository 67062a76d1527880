/**
 * A tokenizer.json as GGUF metadata (llama.cpp v0.5.0: conversion/base.py, gguf-py/gguf/vocab.py). Two kinds: byte-level
 * BPE (`gpt2`), and BPE over SentencePiece's pieces with bytes to fall back on (`llama`), which llama.cpp merges by the
 * score of the merged piece; as score it gets the rank of the first merge that makes it.
 */
import type { JsonObject, JsonValue } from '../formats/strict-json';
import { parseStrictJson } from '../formats/strict-json';
import {
  type AddedToken,
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

const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;
const BYTE = 6;

/** Score of tokens that no merge makes. */
const UNMERGED = -1e6;

const SPACE = '\u2581';

/** Keys of ids and how tokenizer_config.json and config.json call them. */
const SPECIAL = {
  bos_token_id: 'bos_token',
  eos_token_id: 'eos_token',
  unknown_token_id: 'unk_token',
  padding_token_id: 'pad_token',
  seperator_token_id: 'sep_token',
} as const;

/**
 * Metadata under `tokenizer.`, one token for every row of the embedding.
 * @throws AmalgamError `GgufUnsupported` for a tokenizer llama.cpp does not have, and what parsing throws
 */
export function tokenizerMetadata(
  texts: TokenizerTexts,
  rows: number,
  config: JsonObject,
): [key: string, value: GgufValue][] {
  if (texts.tokenizer === undefined)
    throw refused('A GGUF file needs a tokenizer.json, and the output has none.');
  const read = readTokenizerJson(texts.tokenizer, 'tokenizer.json');
  const kind = kindOf(read);
  let size = 0;
  for (const id of read.ids.values()) size = Math.max(size, id + 1);
  if (size > rows) {
    throw refused(`The tokenizer has ids up to ${size - 1}, but the embedding has ${rows} rows.`);
  }
  const settings = texts.config === undefined ? new Map() : objectOf(texts.config, 'tokenizer_config.json');
  const unknown = contentOf(settings.get('unk_token'));
  const { tokens, types } = tokenTable(read, rows, kind.model, unknown);
  const [front, behind] = aroundText(read.rest.get('post_processor'), settings);
  const template = texts.chatTemplate ?? chatTemplate(settings.get('chat_template'));
  return [
    ['tokenizer.ggml.model', { type: 'text', value: kind.model }],
    ['tokenizer.ggml.pre', { type: 'text', value: kind.pre }],
    ['tokenizer.ggml.tokens', { type: 'array', of: 'text', values: tokens }],
    ...(kind.model === 'llama'
      ? entry('tokenizer.ggml.scores', { type: 'array', of: 'f32', values: scores(read, tokens) })
      : entry('tokenizer.ggml.merges', { type: 'array', of: 'text', values: read.merges })),
    ['tokenizer.ggml.token_type', { type: 'array', of: 'i32', values: types }],
    ...specialIds(read, settings, config),
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: front }],
    ['tokenizer.ggml.add_eos_token', { type: 'bool', value: behind }],
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
 * A change of the text ahead of its splitting that llama.cpp leaves out, where it changes few texts.
 * @throws AmalgamError `GgufUnsupported` for one that changes most
 */
export function ignoredNormalizer({ tokenizer }: TokenizerTexts): GgufWarning | undefined {
  if (tokenizer === undefined) return undefined;
  const { rest, byteFallback } = readTokenizerJson(tokenizer, 'tokenizer.json');
  const steps = stepsOf(rest.get('normalizer')).map((step) => step.get('type'));
  const others = steps.filter((type) => !(byteFallback && SPACES.includes(type)));
  const unknown = others.find((type) => !UNICODE_FORMS.includes(type));
  if (unknown !== undefined) {
    throw refused(`The tokenizer changes a text by ${String(unknown)} first, which llama.cpp does not.`);
  }
  if (others.length === 0) return undefined;
  return {
    message: `The tokenizer brings a text into the form ${others.join(', ')} first, which llama.cpp does not: there letters with separate accents get other tokens.`,
    remedy: 'Nothing to do where texts come in that form, as most do.',
  };
}

function entry(key: string, value: GgufValue): [string, GgufValue][] {
  return [[key, value]];
}

function kindOf(read: TokenizerTokens): { model: 'gpt2' | 'llama'; pre: string } {
  if (read.type !== 'BPE')
    throw refused(`A ${read.type} tokenizer cannot be written as GGUF here, only BPE.`);
  if (read.byteFallback) return { model: 'llama', pre: 'default' };
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
  for (const [token, id] of ids) {
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

function specialIds(
  { ids }: TokenizerTokens,
  settings: JsonObject,
  config: JsonObject,
): [string, GgufValue][] {
  return Object.entries(SPECIAL).flatMap(([key, name]) => {
    const token = contentOf(settings.get(name));
    const id = (token === undefined ? undefined : ids.get(token)) ?? firstNumber(config.get(`${name}_id`));
    return id === undefined ? [] : entry(`tokenizer.ggml.${key}`, { type: 'u32', value: id });
  });
}

/** Whether a token is put in front of a text and behind it: the post-processor says so, else the settings. */
function aroundText(
  processor: JsonValue | undefined,
  settings: JsonObject,
): [front: boolean, behind: boolean] {
  for (const step of stepsOf(processor)) {
    if (step.get('type') !== 'TemplateProcessing') continue;
    const single = step.get('single');
    if (!Array.isArray(single)) continue;
    const at = single.findIndex((part) => part instanceof Map && part.has('Sequence'));
    return [at > 0, at < single.length - 1];
  }
  return [settings.get('add_bos_token') === true, settings.get('add_eos_token') === true];
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

/** A template, or of several named ones the default. */
function chatTemplate(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return undefined;
  const named = value.filter((each) => each instanceof Map);
  const found = named.find((each) => each.get('name') === 'default')?.get('template');
  return typeof found === 'string' ? found : undefined;
}

/** A token as a text or as `{content: …}`. */
function contentOf(value: JsonValue | undefined): string | undefined {
  const content = value instanceof Map ? value.get('content') : value;
  return typeof content === 'string' ? content : undefined;
}

function firstNumber(value: JsonValue | undefined): number | undefined {
  const first = Array.isArray(value) ? value[0] : value;
  if (typeof first !== 'object' || first === null || !('text' in first)) return undefined;
  const number = Number(first.text);
  return Number.isInteger(number) && number >= 0 ? number : undefined;
}

function objectOf(text: string, fileName: string): JsonObject {
  const value = parseStrictJson(text, fileName, TOKENIZER_JSON_RULES);
  return value instanceof Map ? value : new Map();
}
