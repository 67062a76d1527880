/**
 * Contexts and continuations as token ids, as lm-evaluation-harness 0.4.13 makes them (`TemplateLM._encode_pair`,
 * `HFLM.tok_encode`).
 */

import type { GuardedTokenizer } from '../foreign/foreign-text';
import { counted } from '../formats/quantity';
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';
import { rstrip } from '../tasks/python';

/** A text to be scored after another. */
interface Pair {
  context: string;
  continuation: string;
}

export interface PairIds {
  context: number[];
  continuation: number[];
}

/** A pair that cannot be scored, and why, in words. */
interface Refused {
  refused: string;
}

/** The methods of a tokenizer that encoding uses. */
type PairTokenizer = Pick<GuardedTokenizer, 'prefix' | 'prefixToken' | 'encodeAll'>;

/** Characters of a token at most, for what is cut before it is encoded: real ones have four, some rows of spaces a hundred. */
const TOKEN_CHARACTERS = 64;
/** Tokens the harness takes for a model whose files name no length. */
const DEFAULT_MAX_LENGTH = 2048;

/**
 * Spaces at the end of a context move to the continuation; both are encoded together and split by the number of tokens of
 * the context alone. An empty context becomes the prefix token.
 * @param maxLength tokens of a continuation at most
 */
export async function encodePairs(
  tokenizer: PairTokenizer,
  pairs: readonly Pair[],
  maxLength: number,
): Promise<(PairIds | Refused)[]> {
  const longest = maxLength * TOKEN_CHARACTERS;
  const moved = pairs.map(({ context: full, continuation }) => {
    // its beginning would be cut off later, token by token
    const context = full.slice(-longest);
    const isLong = continuation.length > longest;
    return {
      context: rstrip(context),
      whole: isLong ? '' : context + continuation,
      isEmpty: context === '',
      isLong,
    };
  });
  const texts = [...new Set(moved.flatMap(({ context, whole }) => [context, whole]))];
  const encoded = await tokenizer.encodeAll(texts);
  const plain = new Map(texts.map((text, i) => [text, encoded[i] ?? []]));
  const { prefixToken } = tokenizer;
  const dressed = (text: string) => {
    // a text that brings its own beginning gets none
    const prefix = prefixToken && text.startsWith(prefixToken.text) ? [] : tokenizer.prefix;
    return [...prefix, ...plain.get(text)!];
  };
  return moved.map(({ context, whole, isEmpty, isLong }) => {
    if (isLong) return { refused: `The continuation has more than ${longest} characters.` };
    if (isEmpty && !prefixToken)
      return { refused: 'The context is empty, and the tokenizer has no token to begin with.' };
    const ids = isEmpty
      ? beginEmpty(plain.get(whole)!, prefixToken!.id)
      : splitPair(dressed(context), dressed(whole));
    if (ids.continuation.length === 0) {
      return {
        refused: 'No token of the continuation is left: its text becomes part of the context’s last token.',
      };
    }
    if (ids.context.length === 0) return { refused: 'The context has no tokens.' };
    if (ids.continuation.length > maxLength) {
      return {
        refused: `The continuation has ${counted(ids.continuation.length, 'token')}; the model takes ${maxLength}.`,
      };
    }
    return ids;
  });
}

function splitPair(context: number[], whole: number[]): PairIds {
  return { context, continuation: whole.slice(context.length) };
}

function beginEmpty(continuation: number[], prefix: number): PairIds {
  if (continuation[0] === prefix) return { context: [prefix], continuation: continuation.slice(1) };
  return { context: [prefix], continuation };
}

/**
 * Tokens the harness lets a model see (`resolve_max_length`): the config's length, else the tokenizer's, else 2048.
 * @param config the parsed config.json
 */
export function harnessMaxLength(config: JsonObject, tokenizerLength: number | undefined): number {
  const text = config.get('text_config');
  const own = text instanceof Map ? text : config;
  for (const field of ['n_positions', 'max_position_embeddings', 'n_ctx']) {
    const length = lengthOf(own.get(field));
    if (length !== undefined) return length;
  }
  return tokenizerLength ?? DEFAULT_MAX_LENGTH;
}

function lengthOf(value: JsonValue | undefined): number | undefined {
  if (value === undefined || !isJsonNumber(value)) return undefined;
  const length = Number(value.text);
  return Number.isInteger(length) && length > 0 ? length : undefined;
}
