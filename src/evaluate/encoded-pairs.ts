/**
 * Contexts and continuations as token ids, as lm-evaluation-harness 0.4.13 makes them (`TemplateLM._encode_pair`,
 * `HFLM.tok_encode`, `utils.get_rolling_token_windows`).
 */
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';
import { rstrip } from '../tasks/python';
import type { GuardedTokenizer } from './foreign-text';

/** A text to be scored behind another. */
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

/** What encoding takes of a tokenizer. */
type PairTokenizer = Pick<GuardedTokenizer, 'prefix' | 'prefixToken' | 'encodeAll'>;

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
  const moved = pairs.map(({ context, continuation }) => {
    const kept = rstrip(context);
    return { context: kept, whole: context + continuation, isEmpty: context === '' };
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
  return moved.map(({ context, whole, isEmpty }) => {
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
        refused: `The continuation has ${ids.continuation.length} tokens; the model takes ${maxLength}.`,
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

/** A whole text as pairs: every token once, behind as much as fits (rolling log-likelihood). */
export async function encodeRolling(
  tokenizer: PairTokenizer,
  text: string,
  maxLength: number,
): Promise<PairIds[] | Refused> {
  if (!tokenizer.prefixToken) return { refused: 'The tokenizer has no token for a text to begin with.' };
  const { id, text: prefixText } = tokenizer.prefixToken;
  const [encoded] = await tokenizer.encodeAll([text]);
  const ids = [...(text.startsWith(prefixText) ? [] : tokenizer.prefix), ...encoded!];
  if (ids.length === 0) return { refused: 'The text has no tokens.' };
  const pairs: PairIds[] = [{ context: [id], continuation: ids.slice(0, maxLength) }];
  for (let done = maxLength; done < ids.length; done += maxLength) {
    const end = Math.min(done + maxLength, ids.length);
    // all that fits in front of what is scored
    pairs.push({ context: ids.slice(end - maxLength - 1, done), continuation: ids.slice(done, end) });
  }
  return pairs;
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
