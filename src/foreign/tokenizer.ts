/** Text ↔ token ids, by the parts of a repo's tokenizer.json (tokenizer-parts.ts). */

import { AmalgamError } from '../errors';
import { TOKEN_FIELDS } from '../formats/chat-template';
import { counted } from '../formats/quantity';
import { parseJsonObject } from '../formats/strict-json';
import { tokenizerFault } from '../formats/tokenizer-fault';
import { aroundPair, aroundText, type PairPiece } from '../formats/tokenizer-json';
import { cleaned, decoder, modelType, wordModel } from './tokenizer-models';
import { type FoundToken, normalizer, preTokenizer, type Step, tokenFinder } from './tokenizer-parts';

export interface Tokenizer {
  /** Highest id + 1, added tokens included. */
  readonly size: number;
  /** The same without added tokens. */
  readonly ownSize: number;
  /** Ids the tokenizer itself puts in front of a text: BOS, or nothing. */
  readonly prefix: readonly number[];
  /** And behind it: an end-of-text token, or nothing. */
  readonly suffix: readonly number[];
  /** What it makes of two texts; undefined where that is not known. */
  readonly pair: readonly PairPiece[] | undefined;
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
  /** A decoder that is fed one id at a time. @param before ids that the text follows on: its first word may need a space */
  stream(before?: readonly number[]): TokenStream;
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
  /** `model_type` of config.json. */
  modelType?: string;
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
  const fileName = `${label}/tokenizer.json`;
  const json = object(files.tokenizer, fileName);
  const fault = tokenizerFault(files.tokenizer, fileName);
  if (fault !== undefined) throw invalid(`${fileName} ${fault}.`);
  const engine = openEngine(json, { ...config, model_type: files.modelType }, label);
  const { ahead, behind } = aroundText(json.post_processor);
  return {
    size: engine.size,
    ownSize: engine.ownSize,
    prefix: ahead,
    suffix: behind,
    pair: aroundPair(json.post_processor),
    mask: maskOf(engine, config),
    prefixToken: prefixTokenOf(engine, config),
    maxLength: maxLengthOf(config.model_max_length),
    encode: engine.encode,
    decode: engine.decode,
    idOf: engine.idOf,
    stream: (before = []) => openStream(engine.decode, before),
  };
}

/**
 * A tokenizer whose ids do not match the rows of the embedding belongs to another model. Embeddings are often filled up
 * a little, so fewer ids than rows are fine up to a tenth; added tokens may go beyond them (Gemma 3 1B), until a text has one.
 * @throws AmalgamError `VocabularyMismatch`
 */
export function checkVocabulary({ size, ownSize }: Pick<Tokenizer, 'size' | 'ownSize'>, vocab: number): void {
  const spare = Math.max(256, vocab / 10);
  if (ownSize <= vocab && size >= vocab - spare) return;
  throw new AmalgamError(
    'VocabularyMismatch',
    `The tokenizer has ${counted(size, 'token')}, the model's embedding ${counted(vocab, 'row')}.`,
    'They do not belong together. Use the tokenizer of the model or of its base.',
  );
}

/** The fields of a tokenizer_config.json. @throws AmalgamError `TokenizerInvalid`, `LimitExceeded` */
export function tokenizerConfig(text: string, label = 'the model'): Record<string, unknown> {
  return object(text, `${label}/tokenizer_config.json`);
}

function object(text: string, fileName: string): Record<string, unknown> {
  try {
    return parseJsonObject(text, fileName);
  } catch (cause) {
    if (!(cause instanceof AmalgamError) || cause.code === 'LimitExceeded') throw cause;
    throw invalid(cause.message, cause);
  }
}

interface Engine extends Pick<Tokenizer, 'size' | 'ownSize' | 'encode' | 'decode' | 'idOf'> {}

function openEngine(
  tokenizer: Record<string, unknown>,
  config: Record<string, unknown>,
  label: string,
): Engine {
  // what a part of the file cannot do shows with a text that asks it to
  const inWords =
    <A extends unknown[], R>(call: (...given: A) => R) =>
    (...given: A): R => {
      try {
        return call(...given);
      } catch (cause) {
        throw new AmalgamError(
          'TokenizerUnsupported',
          `The tokenizer of ${label} cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`,
          'Use the tokenizer.json of another repo of the same family, or give token ids instead of text.',
          { cause },
        );
      }
    };
  const engine = inWords(engineOf)(tokenizer, config);
  const encode = inWords(engine.encode);
  encode('a b');
  return { ...engine, encode, decode: inWords(engine.decode) };
}

/** The way of a text through the parts of the file. @throws Error naming what is not known */
function engineOf(json: Record<string, unknown>, config: Record<string, unknown>): Engine {
  const model = json.model as Step;
  const isArray = Array.isArray(model.vocab);
  const ids = new Map<string, number>(
    isArray
      ? (model.vocab as [string, number][]).map(([token], id) => [token, id])
      : Object.entries(model.vocab as Record<string, number>),
  );
  const texts = new Map([...ids].map(([token, id]) => [id, token]));
  const added = addedTokens(json, config, ids);
  const extra = new Set(added.map(({ id }) => id));
  const ownSize = 1 + greatest([...texts.keys()].filter((id) => !extra.has(id)));
  const special = new Set(added.flatMap(({ content, special: is }) => (is ? [content] : [])));
  const llama = llamaSplitter(json, config);
  const normalize = normalizer(llama ? null : (json.normalizer as Step | null));
  for (const { content, id, normalized } of added) {
    ids.set(content, id);
    texts.set(id, normalized ? normalize(content) : content);
  }
  const pre = preTokenizer(llama ?? (json.pre_tokenizer as Step | null));
  const idsOf = wordModel(model);
  const decodeParts = decoder(json.decoder as Step | null);
  const asWritten = tokenFinder(added.filter(({ normalized }) => !normalized));
  const changed = tokenFinder(
    added.flatMap((token) => (token.normalized ? { ...token, content: normalize(token.content) } : [])),
  );
  const cleans = config.clean_up_tokenization_spaces === true && modelType(model) !== 'BPE';
  return {
    size: 1 + greatest(texts.keys()),
    ownSize,
    idOf: (token) => ids.get(token),
    encode: (text) =>
      asWritten({ text, starts: true }).flatMap((section) =>
        typeof section === 'number'
          ? section
          : changed({ ...section, text: normalize(section.text) }).flatMap((piece) =>
              typeof piece === 'number' ? piece : pre([piece]).flatMap((word) => idsOf(word.text)),
            ),
      ),
    decode(tokenIds) {
      const tokens = tokenIds.flatMap((id) => texts.get(id) ?? []).filter((token) => !special.has(token));
      if (tokens.length === 0) return '';
      const text = decodeParts(tokens).join('');
      return cleans ? cleaned(text) : text;
    },
  };
}

/** Of more than a call takes arguments. */
function greatest(numbers: Iterable<number>): number {
  let most = -1;
  for (const number of numbers) most = Math.max(most, number);
  return most;
}

/**
 * Added tokens with the ids that Rust gives them: that of the model's own token, else the next one.
 * whatever the file says. Transformers makes the tokens that the config names special ones, too.
 */
function addedTokens(
  { added_tokens }: Record<string, unknown>,
  config: Record<string, unknown>,
  own: ReadonlyMap<string, number>,
): FoundToken[] {
  const named = new Set(
    [
      ...TOKEN_FIELDS.map((name) => config[name]),
      config.additional_special_tokens,
      config.extra_special_tokens,
    ]
      .flat()
      .flatMap((token) => tokenText(token) ?? []),
  );
  const made = new Map<string, FoundToken>();
  let next = own.size;
  for (const token of Array.isArray(added_tokens) ? (added_tokens as Partial<FoundToken>[]) : []) {
    const { content } = token;
    if (typeof content !== 'string' || content === '' || made.has(content)) continue;
    const id = own.get(content) ?? next++;
    const { normalized = token.special !== true, special = false } = token;
    const { single_word = false, lstrip = false, rstrip = false } = token;
    made.set(content, {
      ...{ content, id, single_word, lstrip, rstrip, normalized },
      special: special || named.has(content),
    });
  }
  for (const content of named) {
    const id = own.get(content);
    if (id === undefined || made.has(content)) continue;
    const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    made.set(content, { content, id, ...plain, special: true });
  }
  return [...made.values()];
}

function invalid(message: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'TokenizerInvalid',
    message,
    'Download the file again, or use the tokenizer of the base model.',
    { cause },
  );
}

/** `mask_token` of the config, else what BERT and RoBERTa call it. */
function maskOf(engine: Engine, { mask_token }: Record<string, unknown>): number | undefined {
  const names = [tokenText(mask_token), '[MASK]', '<mask>'];
  return names.flatMap((name) => (name === undefined ? [] : (engine.idOf(name) ?? [])))[0];
}

/** Types of models that transformers 5.18 reads by the file, whatever class it names (models/auto/tokenization_auto.py). */
const AS_THE_FILE_SAYS = new Set(
  'mistral mixtral ministral ministral3 mistral3 phi3 phimoe internlm2 jamba minicpm3 nemotron ernie4_5 ernie4_5_moe'.split(
    ' ',
  ),
);

/**
 * What the class `LlamaTokenizer` of transformers 5 splits by, whatever the file says: a mark for a space in front of the
 * text (of every section, of a `legacy` one) where none stands. The file's own `Prepend` puts one everywhere.
 */
function llamaSplitter(
  { normalizer: change, pre_tokenizer }: Record<string, unknown>,
  { tokenizer_class, legacy, add_prefix_space, model_type }: Record<string, unknown>,
): Step | undefined {
  if (AS_THE_FILE_SAYS.has(String(model_type))) return undefined;
  const marks = '{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},';
  if (!/^LlamaTokenizer(Fast)?$/.test(String(tokenizer_class)) || pre_tokenizer) return undefined;
  if (!JSON.stringify(change ?? null).startsWith(marks)) return undefined;
  const prepend_scheme = add_prefix_space === false ? 'never' : legacy === true ? 'always' : 'first';
  return { type: 'Metaspace', replacement: '▁', prepend_scheme, split: false };
}

function prefixTokenOf(engine: Engine, { bos_token, eos_token }: Record<string, unknown>) {
  const text = tokenText(bos_token) ?? tokenText(eos_token);
  const id = text === undefined ? undefined : engine.idOf(text);
  return text === undefined || id === undefined ? undefined : { id, text };
}

/** transformers writes 10³⁰ where there is no limit. */
function maxLengthOf(length: unknown): number | undefined {
  return typeof length === 'number' && length < 1e15 ? length : undefined;
}

/** A special token of tokenizer_config.json: a text, or an object with one. */
export function tokenText(token: unknown): string | undefined {
  if (typeof token === 'string') return token;
  if (typeof token !== 'object' || token === null || !('content' in token)) return undefined;
  return typeof token.content === 'string' ? token.content : undefined;
}

/** Tokens that a stream looks back on: no character has more bytes. */
const CONTEXT = 4;

/**
 * Decodes from a few tokens back, because the text of a token can depend on the one before, and holds back what ends in
 * the replacement character: the rest of its bytes are still to come.
 */
function openStream(decode: (ids: readonly number[]) => string, before: readonly number[]): TokenStream {
  const ids = before.slice(-CONTEXT);
  let context = 0;
  let told = ids.length;
  const fresh = (final: boolean) => {
    const known = decode(ids.slice(context, told));
    const text = decode(ids.slice(context));
    if (text.length <= known.length || (!final && text.endsWith('\ufffd'))) return '';
    context = told;
    told = ids.length;
    return text.slice(known.length);
  };
  return {
    push(id) {
      ids.push(id);
      return fresh(false);
    },
    end: () => fresh(true),
  };
}
