/** `tokenizer_source` and `tokenizer` of mergekit's schema (its `tokenizer/config.py`, version 0.1.4). */
import type { Recipe, RecipeToken, TokenSource } from './recipe';
import {
  assign,
  complain,
  type Field,
  isMapping,
  need,
  type RecipeReader,
  readChoice,
  readInteger,
  readMapping,
  readModelRef,
  readNumber,
  readText,
} from './recipe-yaml-nodes';

type Tokenizer = Pick<Recipe, 'tokenizerSource' | 'tokenizer'>;

const MAX_MULTIPLE = 65_536;
const MAX_TOKEN_ID = 2 ** 31 - 1;

/** Reads either of the two keys, which mean the same: one of them at most. */
export function readTokenizer(
  reader: RecipeReader,
  legacy: Field | undefined,
  field: Field | undefined,
): Tokenizer {
  if (legacy && field) {
    complain(
      reader,
      field,
      'The recipe has both tokenizer_source and tokenizer.',
      'Keep one: tokenizer: {source: …} says what tokenizer_source does, and more.',
    );
    return {};
  }
  if (legacy) return sourceOf(readModelRef(reader, legacy));
  const fields = field && readMapping(reader, field, ['source', 'tokens', 'pad_to_multiple_of']);
  if (!fields) return {};
  const source = fields.get('source');
  const tokenizer: NonNullable<Recipe['tokenizer']> = {};
  const tokens = fields.get('tokens');
  if (tokens) {
    const read = [...(readMapping(reader, tokens, 'any') ?? [])].map(([token, entry]) =>
      readToken(reader, token, entry),
    );
    tokenizer.tokens = read.filter((entry) => entry !== undefined);
  }
  const multiple = fields.get('pad_to_multiple_of');
  assign(tokenizer, 'padToMultipleOf', multiple && readInteger(reader, multiple, 1, MAX_MULTIPLE));
  return {
    // mergekit's default
    ...sourceOf(source ? readModelRef(reader, source) : 'union'),
    ...(Object.keys(tokenizer).length > 0 ? { tokenizer } : {}),
  };
}

function sourceOf(source: string | undefined): Tokenizer {
  return source === undefined ? {} : { tokenizerSource: source };
}

function readToken(reader: RecipeReader, token: string, entry: Field): RecipeToken | undefined {
  if (token === '') {
    return complain(reader, entry, `${entry.where} names an empty token.`, 'Write the token as a string.');
  }
  const fields = readMapping(reader, entry, ['source', 'force']);
  const field = fields && need(reader, fields, entry, 'source');
  const source = field && readSource(reader, field);
  const forceField = fields?.get('force');
  const force = forceField && readNumber(reader, forceField);
  if (forceField && typeof force !== 'boolean') {
    return complain(reader, forceField, `${forceField.where} is not true or false.`, 'Write true or false.');
  }
  if (!source) return undefined;
  return force === true ? { token, source, force } : { token, source };
}

function readSource(reader: RecipeReader, field: Field): TokenSource | undefined {
  if (!isMapping(reader, field)) {
    const model = readModelRef(reader, field);
    return model === undefined ? undefined : { kind: 'model', model };
  }
  const fields = readMapping(reader, field, ['kind', 'model', 'token', 'token_id']);
  const kindField = fields && need(reader, fields, field, 'kind');
  const kind = kindField && readChoice(reader, kindField, ['zero', 'model_token']);
  if (!fields || !kind) return undefined;
  const [model, token, tokenId] = ['model', 'token', 'token_id'].map((name) => fields.get(name));
  if (kind === 'zero') {
    const extra = model ?? token ?? tokenId;
    if (!extra) return { kind };
    return complain(reader, extra, `${extra.where} has no effect with kind: zero.`, 'Remove it.');
  }
  const ref = readModelRef(reader, need(reader, fields, field, 'model'));
  if ((token === undefined) === (tokenId === undefined)) {
    return complain(
      reader,
      field,
      `${field.where} needs either token or token_id, one of the two.`,
      'Name the token of the model whose embedding is taken.',
    );
  }
  if (ref === undefined) return undefined;
  if (token) {
    const text = readText(reader, token);
    return text === undefined ? undefined : { kind, model: ref, token: text };
  }
  const id = readInteger(reader, tokenId!, 0, MAX_TOKEN_ID);
  return id === undefined ? undefined : { kind, model: ref, tokenId: id };
}
