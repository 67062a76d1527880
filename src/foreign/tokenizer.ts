/** Text ↔ token ids, by `@huggingface/tokenizers` over a repo's tokenizer.json. */
import { Tokenizer as Engine } from '@huggingface/tokenizers';
import { AmalgamError } from '../errors';
import { parseJson } from '../formats/strict-json';
import { MAX_TOKENS } from '../formats/tokenizer-json';

export interface Tokenizer {
  /** Highest id + 1, added tokens included. */
  readonly size: number;
  /** Ids the tokenizer itself puts in front of a text: BOS, or nothing. */
  readonly prefix: readonly number[];
  /** And behind it: an end-of-text token, or nothing. */
  readonly suffix: readonly number[];
  /** The token that stands for one to be filled in, of encoders. */
  readonly mask: number | undefined;
  /** BOS, else end-of-text, by the tokenizer's config: what stands where a text has nothing in front of it. */
  readonly prefixToken: { id: number; text: string } | undefined;
  /** `model_max_length` of the config, where it is a length. */
  readonly maxLength: number | undefined;
  /** Ids of a text, without anything in front or behind; special tokens written out in the text count as such. */
  encode(text: string): number[];
  /** Text of ids, special tokens left out. */
  decode(ids: readonly number[]): string;
  idOf(token: string): number | undefined;
  /** A decoder that is fed one id at a time. */
  stream(): TokenStream;
}

export interface TokenStream {
  /** The text that this id makes certain; empty while a character is still incomplete. */
  push(id: number): string;
  /** What was held back. */
  end(): string;
}

/** The texts a tokenizer is made of, as the repo has them. */
export interface TokenizerFiles {
  /** tokenizer.json. */
  tokenizer?: string;
  /** tokenizer_config.json. */
  config?: string;
  /** True when the repo has a tokenizer.model (SentencePiece). */
  hasSentencePiece: boolean;
}

/**
 * @param label the model, for messages
 * @throws AmalgamError `TokenizerUnsupported` (no tokenizer.json, or one with parts the library does not know),
 *   `TokenizerInvalid` (not JSON, not a tokenizer), `LimitExceeded`
 */
export function createTokenizer(files: TokenizerFiles, label: string): Tokenizer {
  if (files.tokenizer === undefined) {
    throw new AmalgamError(
      'TokenizerUnsupported',
      files.hasSentencePiece
        ? `${label} has its tokenizer as tokenizer.model (SentencePiece) only, which cannot be read here.`
        : `${label} has no tokenizer.json.`,
      'Use the tokenizer.json of another repo of the same family, or give token ids instead of text.',
    );
  }
  const config = files.config === undefined ? {} : tokenizerConfig(files.config, label);
  const json = object(files.tokenizer, `${label}/tokenizer.json`);
  const engine = openBackend(json, config, label);
  const marksOnce = isLlamaOfOld(json, config);
  const encode = (text: string) =>
    engine.encode(marksOnce && text.startsWith(' ') ? text.slice(1) : text, { add_special_tokens: false })
      .ids;
  const decode = (ids: readonly number[]) =>
    ids.length === 0 ? '' : engine.decode([...ids], { skip_special_tokens: true });
  const size = 1 + Math.max(-1, ...maxima(engine));
  return {
    size,
    prefix: prefixOf(engine, config),
    suffix: dressing(engine).behind,
    mask: maskOf(engine, config),
    prefixToken: prefixTokenOf(engine, config),
    maxLength: maxLengthOf(config.model_max_length),
    encode,
    decode,
    idOf: (token) => engine.token_to_id(token),
    stream: () => openStream(decode),
  };
}

/**
 * A tokenizer whose ids do not match the rows of the embedding belongs to another model. Embeddings are often filled up
 * a little, so fewer ids than rows are fine up to a tenth.
 * @throws AmalgamError `VocabularyMismatch`
 */
export function checkVocabulary(tokenizer: Pick<Tokenizer, 'size'>, vocab: number): void {
  const spare = Math.max(256, vocab / 10);
  if (tokenizer.size <= vocab && tokenizer.size >= vocab - spare) return;
  throw new AmalgamError(
    'VocabularyMismatch',
    `The tokenizer has ${tokenizer.size} tokens, the model's embedding ${vocab} rows.`,
    'They do not belong together. Use the tokenizer of the model or of its base.',
  );
}

/** The fields of a tokenizer_config.json. @throws AmalgamError `TokenizerInvalid`, `LimitExceeded` */
export function tokenizerConfig(text: string, label = 'the model'): Record<string, unknown> {
  return object(text, `${label}/tokenizer_config.json`);
}

function object(text: string, fileName: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(text, fileName);
  } catch (cause) {
    if (cause instanceof AmalgamError && cause.code === 'LimitExceeded') throw cause;
    throw invalid(`${fileName} is not JSON.`, cause);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw invalid(`${fileName} is not an object.`);
}

function openBackend(
  tokenizer: Record<string, unknown>,
  config: Record<string, unknown>,
  label: string,
): Engine {
  const model = tokenizer.model;
  if (typeof model !== 'object' || model === null || !('vocab' in model)) {
    throw invalid(`${label}/tokenizer.json has no model with a vocabulary.`);
  }
  checkIds(tokenizer, model.vocab, `${label}/tokenizer.json`);
  try {
    const engine = new Engine(tokenizer, config);
    engine.encode('a b');
    return engine;
  } catch (cause) {
    throw new AmalgamError(
      'TokenizerUnsupported',
      `The tokenizer of ${label} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
      'Use the tokenizer.json of another repo of the same family, or give token ids instead of text.',
      { cause },
    );
  }
}

/** @throws AmalgamError `TokenizerInvalid` for an id that is none: the library makes lists as long as the highest one */
function checkIds(tokenizer: Record<string, unknown>, vocabulary: unknown, fileName: string): void {
  const added = Array.isArray(tokenizer.added_tokens) ? (tokenizer.added_tokens as { id?: unknown }[]) : [];
  const own = Array.isArray(vocabulary) ? [vocabulary.length] : Object.values(Object(vocabulary) as object);
  for (const id of [own, added.map((token) => token?.id)].flat()) {
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < MAX_TOKENS) continue;
    throw invalid(`${fileName} has a token whose id is no whole number below ${MAX_TOKENS}.`);
  }
}

function invalid(message: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'TokenizerInvalid',
    message,
    'Download the file again, or use the tokenizer of the base model.',
    { cause },
  );
}

function* maxima(engine: Engine): Generator<number> {
  let most = -1;
  for (const id of engine.get_vocab(true).values()) most = Math.max(most, id);
  yield most;
  for (const id of engine.get_added_tokens_decoder().keys()) yield id;
}

/**
 * What stands in front of a text. The post-processor says it; `add_bos_token` of the config overrides, as in
 * transformers' fast tokenizers. What the post-processor appends (EOS) is left out: the text goes on.
 */
function prefixOf(engine: Engine, config: Record<string, unknown>): number[] {
  const prefix = dressing(engine).ahead;
  const bos = tokenText(config.bos_token);
  const bosId = bos === undefined ? undefined : engine.token_to_id(bos);
  if (config.add_bos_token === false) return prefix.filter((id) => id !== bosId);
  return config.add_bos_token === true && prefix.length === 0 && bosId !== undefined ? [bosId] : prefix;
}

/** What the post-processor puts around a text. */
function dressing(engine: Engine): { ahead: number[]; behind: number[] } {
  const plain = engine.encode('a', { add_special_tokens: false }).ids;
  const dressed = engine.encode('a', { add_special_tokens: true }).ids;
  const at = dressed.findIndex((_, i) => plain.every((id, j) => dressed[i + j] === id));
  if (at < 0) return { ahead: [], behind: [] };
  return { ahead: dressed.slice(0, at), behind: dressed.slice(at + plain.length) };
}

/** `mask_token` of the config, else what BERT and RoBERTa call it. */
function maskOf(engine: Engine, { mask_token }: Record<string, unknown>): number | undefined {
  const names = [tokenText(mask_token), '[MASK]', '<mask>'];
  return names.flatMap((name) => (name === undefined ? [] : (engine.token_to_id(name) ?? [])))[0];
}

/**
 * Does the file put a mark for a space in front of every text, of a class for which transformers (5.x, `LlamaTokenizer`)
 * puts it there only where the text does not begin with a space?
 */
function isLlamaOfOld(
  { normalizer, pre_tokenizer }: Record<string, unknown>,
  { tokenizer_class }: Record<string, unknown>,
): boolean {
  const marks = '{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},';
  return (
    /^LlamaTokenizer(Fast)?$/.test(String(tokenizer_class)) &&
    pre_tokenizer === null &&
    JSON.stringify(normalizer ?? null).startsWith(marks)
  );
}

function prefixTokenOf(engine: Engine, { bos_token, eos_token }: Record<string, unknown>) {
  const text = tokenText(bos_token) ?? tokenText(eos_token);
  const id = text === undefined ? undefined : engine.token_to_id(text);
  return text === undefined || id === undefined ? undefined : { id, text };
}

/** transformers writes 10³⁰ where there is no limit. */
function maxLengthOf(length: unknown): number | undefined {
  return typeof length === 'number' && length < 1e15 ? length : undefined;
}

/** A special token of tokenizer_config.json: a text, or an object with one. */
function tokenText(token: unknown): string | undefined {
  if (typeof token === 'string') return token;
  if (typeof token !== 'object' || token === null || !('content' in token)) return undefined;
  return typeof token.content === 'string' ? token.content : undefined;
}

/**
 * Decodes from a few tokens back, because the text of a token can depend on the one before, and holds back what ends in
 * the replacement character: the rest of its bytes are still to come.
 */
function openStream(decode: (ids: readonly number[]) => string): TokenStream {
  const ids: number[] = [];
  let context = 0;
  let told = 0;
  const fresh = (final: boolean) => {
    const before = decode(ids.slice(context, told));
    const text = decode(ids.slice(context));
    if (text.length <= before.length || (!final && text.endsWith('\ufffd'))) return '';
    context = told;
    told = ids.length;
    return text.slice(before.length);
  };
  return {
    push(id) {
      ids.push(id);
      return fresh(false);
    },
    end: () => fresh(true),
  };
}
