/** Tokenizer files with the tokens of the union; most merges copy theirs, and load none of this. */
import { editJsonObject, type JsonEdit } from '../../formats/json-edit';
import { type PlainJson, parseJsonObject } from '../../formats/strict-json';
import type { AddedToken } from '../../formats/tokenizer-json';
import type { TokenizerChanges } from './output-vocabulary';
import type { KnownVocabulary } from './vocabulary';

/** tokenizer.json with the tokens of the union. Whatever is not about them keeps every character. */
export function unitedTokenizer(text: string, from: KnownVocabulary, changes: TokenizerChanges): string {
  const added = addedTokens(from, changes);
  const edits = new Map<string, JsonEdit>([['added_tokens', added.map(addedData)]]);
  const model = new Map<string, JsonEdit>();
  const entries = vocabularyEntries(from, changes, added);
  if (entries.length > 0) model.set('vocab', (vocabulary) => appendInside(vocabulary, entries));
  if (changes.merges) {
    const more = changes.merges.tokens.merges.slice(from.tokens.merges.length);
    model.set('merges', (merges) =>
      appendInside(
        merges,
        more.map((pair) => mergeText(merges, pair)),
      ),
    );
  }
  if (model.size > 0) edits.set('model', (inner) => editJsonObject(inner, model));
  return editJsonObject(text, edits);
}

function addedTokens({ tokens }: KnownVocabulary, { added, dropped }: TokenizerChanges): AddedToken[] {
  const kept = [...tokens.added.values()].filter(({ content }) => !dropped.has(content));
  return [...kept, ...added].sort((a, b) => a.id - b.id);
}

/**
 * New entries of the model's own list. Loaders number added tokens from the end of that list, so where it gets longer,
 * or has holes, the added tokens stand in it as well, which changes nothing in how text is split.
 */
function vocabularyEntries(
  { tokens }: KnownVocabulary,
  { own }: TokenizerChanges,
  added: readonly AddedToken[],
): string[] {
  if (tokens.type === 'Unigram') return own.map(({ token, score }) => `[${JSON.stringify(token)}, ${score}]`);
  const outside = added.filter(({ content }) => !tokens.own.has(content));
  const numbered = outside.every(({ id }, i) => id === tokens.own.size + i);
  const listed = own.length > 0 || !numbered ? outside : [];
  return [
    ...own.map(({ token, id }) => [token, id] as const),
    ...listed.map(({ content, id }) => [content, id] as const),
  ]
    .sort((a, b) => a[1] - b[1])
    .map(([token, id]) => `${JSON.stringify(token)}: ${id}`);
}

/** A merge in the form that the list has: a pair, or one text. */
function mergeText(list: string, merge: string): string {
  const pairs = /^\[\s*\[/.test(list);
  const at = merge.indexOf(' ');
  return JSON.stringify(pairs ? [merge.slice(0, at), merge.slice(at + 1)] : merge);
}

/** Entries behind the last one of a JSON list or object. */
function appendInside(container: string, entries: readonly string[]): string {
  if (entries.length === 0) return container;
  const close = container.trimEnd().length - 1;
  const before = container.slice(0, close).trimEnd();
  const comma = before.length > 1 ? ',' : '';
  return `${before}${comma}\n${entries.join(',\n')}\n${container.slice(close)}`;
}

function addedData({ id, content, singleWord, lstrip, rstrip, normalized, special }: AddedToken): PlainJson {
  return { id, content, single_word: singleWord, lstrip, rstrip, normalized, special };
}

/** tokenizer_config.json: its table of added tokens, where it has one. */
export function unitedSettings(text: string, fileName: string, { added, dropped }: TokenizerChanges): string {
  const table = parseJsonObject(text, fileName).added_tokens_decoder as Record<string, PlainJson> | undefined;
  if (typeof table !== 'object' || table === null) return text;
  const kept = Object.entries(table).filter(
    ([, token]) => !dropped.has((token as { content?: string } | null)?.content ?? ''),
  );
  const more = added.map((token): [string, PlainJson] => {
    const { id: _, ...rest } = addedData(token) as { [key: string]: PlainJson };
    return [String(token.id), rest];
  });
  const edits = new Map<string, JsonEdit>([['added_tokens_decoder', Object.fromEntries([...kept, ...more])]]);
  return editJsonObject(text, edits);
}

/** added_tokens.json: token → id. */
export function unitedAdded(text: string, fileName: string, { added, dropped }: TokenizerChanges): string {
  const table = new Map(Object.entries(parseJsonObject(text, fileName)));
  for (const token of dropped) table.delete(token);
  for (const { content, id } of added) table.set(content, id);
  return `${JSON.stringify(Object.fromEntries(table), null, 2)}\n`;
}
