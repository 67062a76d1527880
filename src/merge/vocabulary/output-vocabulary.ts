/**
 * The vocabulary of the output: the base's, one model's, or the union of all, as mergekit 0.1.4 builds it
 * (`tokenizer/build.py`) but for three things. Appended tokens follow the order of the models and of their ids (there:
 * the order of a hash map); text splits as before: tokens that no table of merges would reach are refused, not turned
 * into added tokens; and a token of the base without a row stays where another model has one.
 */
import { counted } from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import type { AddedToken } from '../../formats/tokenizer-json';
import { nameSome, type Problems } from '../../inputs/problems';
import type { KnownVocabulary } from './vocabulary';

/** Changes from the original tokenizer to the one that is written. */
export interface TokenizerChanges {
  /** Tokens of the model itself that are appended, with the log probability of a Unigram model. */
  own: { token: string; id: number; score?: string }[];
  /** Added tokens that are appended, or become added. */
  added: AddedToken[];
  /** Added tokens that no model has an embedding for. */
  dropped: ReadonlySet<string>;
  /** Model whose merges are taken: they go on where those of the original end. */
  merges?: KnownVocabulary;
}

export interface OutputVocabulary {
  /** Vocabulary whose tokenizer files the output takes. */
  from: KnownVocabulary;
  /** Every token → row. */
  ids: ReadonlyMap<string, number>;
  /** Rows of embedding and head, filled up to the multiple asked for. */
  rows: number;
  /** Absent where the files are taken as they are. */
  changes?: TokenizerChanges;
}

/**
 * @param from the base's vocabulary, or that of the model named as source
 * @param models vocabularies of the models that are merged, base first
 * @returns undefined where no tokenizer can do what is asked, for the reason added to `problems`
 */
export function outputVocabulary(
  recipe: Pick<Recipe, 'tokenizerSource' | 'tokenizer'>,
  from: KnownVocabulary,
  models: readonly KnownVocabulary[],
  problems: Problems,
): OutputVocabulary | undefined {
  const union = recipe.tokenizerSource === 'union';
  const hasRow = (token: string, id: number) => id < from.rows || models.some((m) => m.ids.has(token));
  const ids = new Map([...from.tokens.ids].filter(([token, id]) => hasRow(token, id)));
  const dropped = new Set([...from.tokens.ids.keys()].filter((token) => !ids.has(token)));
  let next = 1 + [...ids.values()].reduce((most, id) => Math.max(most, id), -1);
  const append = (token: string) => {
    ids.set(token, next);
    return next++;
  };
  const changes: TokenizerChanges = { own: [], added: [], dropped };

  if (union) {
    const others = models.filter((m) => m !== from && m.tokens !== from.tokens);
    for (const other of others) {
      for (const token of ownTokens(other)) {
        if (ids.has(token)) continue;
        const score = other.tokens.scores.get(token);
        changes.own.push({ token, id: append(token), ...(score === undefined ? {} : { score }) });
      }
    }
    const merges = checkUnion(from, others, changes, problems);
    if (merges === 'refused') return undefined;
    if (merges) changes.merges = merges;
    for (const other of others) {
      const added = [...other.tokens.added.values()].filter(({ content }) => other.ids.has(content));
      for (const token of added.sort((a, b) => a.id - b.id)) {
        const known = ids.get(token.content);
        if (known !== undefined && isAdded(token.content, from, changes)) continue;
        changes.added.push({ ...token, id: known ?? append(token.content) });
      }
    }
  }
  for (const { token } of recipe.tokenizer?.tokens ?? []) {
    if (!ids.has(token)) changes.added.push({ ...PLAIN, content: token, id: append(token) });
  }

  const multiple = recipe.tokenizer?.padToMultipleOf ?? 1;
  const changed = changes.own.length + changes.added.length > 0;
  return {
    from,
    ids,
    rows: Math.ceil(next / multiple) * multiple,
    ...(changed ? { changes } : {}),
  };
}

/** How `add_tokens` of transformers adds a token given as a text. */
const PLAIN = { singleWord: false, lstrip: false, rstrip: false, normalized: true, special: false };

/** Tokens of the model itself that have a row, by their ids. */
function ownTokens({ tokens, ids }: KnownVocabulary): string[] {
  const own = [...tokens.own].filter((token) => ids.has(token) && !tokens.added.has(token));
  return own.sort((a, b) => ids.get(a)! - ids.get(b)!);
}

function isAdded(token: string, from: KnownVocabulary, { added, dropped }: TokenizerChanges): boolean {
  return (
    (from.tokens.added.has(token) && !dropped.has(token)) || added.some(({ content }) => content === token)
  );
}

/**
 * Whether one tokenizer can split text into the tokens of all. Merges of one model may go on where another's end; what
 * a Unigram model learned has one score per token; the longest token wins in WordPiece whatever the others are.
 *
 * @returns the model whose merges are the longest, where they are not the original's
 */
function checkUnion(
  from: KnownVocabulary,
  others: readonly KnownVocabulary[],
  { own }: TokenizerChanges,
  problems: Problems,
): KnownVocabulary | 'refused' | undefined {
  if (own.length === 0) return undefined;
  const owners = others.filter((other) => own.some(({ token }) => other.tokens.own.has(token)));
  const refuse = (why: string): 'refused' => {
    problems.error(
      'TokenizersNotUnited',
      `No single tokenizer can be the union of ${nameSome([from, ...owners].map(({ ref }) => ref))}: ${why}.`,
      `Choose the tokenizer of one model: tokenizer_source: base, or the model's name.`,
    );
    return 'refused';
  };
  let longest = from;
  for (const other of owners) {
    const [a, b] = [from.tokens, other.tokens];
    if (a.type !== b.type)
      return refuse(`${from.ref} has a ${a.type} model and ${other.ref} a ${b.type} model`);
    if (a.type === 'BPE') {
      const [short, long] =
        longest.tokens.merges.length <= b.merges.length ? [longest, other] : [other, longest];
      const at = short.tokens.merges.findIndex((merge, i) => merge !== long.tokens.merges[i]);
      if (at >= 0) {
        return refuse(
          `their merge lists diverge at number ${at + 1}, so ${counted(own.length, 'token')} such as “${own[0]!.token}” would never be produced`,
        );
      }
      longest = long;
    }
    if (a.type === 'Unigram') {
      const other_ = [...b.scores].find(([token, score]) => (a.scores.get(token) ?? score) !== score);
      if (other_) return refuse(`their scores differ, that of “${other_[0]}” for one`);
      const list = from.tokens.own.size;
      if (own.some(({ id }, i) => id !== list + i)) {
        return refuse('the ids behind the list of the Unigram model are taken by added tokens');
      }
    }
  }
  return longest === from ? undefined : longest;
}
