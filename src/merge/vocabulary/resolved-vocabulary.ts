/**
 * One vocabulary for the output. Models that share theirs are left alone. Where they differ the plan says how and asks
 * which one the output is to have; once the recipe says it, every model is brought to it. Nothing is ever cut silently.
 */

import { counted } from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import { type TokenDifference, tokenDifference, tokenDifferenceWords } from '../../formats/tokenizer-json';
import type { Model } from '../../inputs/model';
import { nameSome, type Problems } from '../../inputs/problems';
import type { VocabularyInfo } from '../../reports/plan';
import { type OutputVocabulary, outputVocabulary } from './output-vocabulary';
import { mapTokenRows, type TokenModel } from './token-rows';
import {
  type KnownVocabulary,
  knownVocabulary,
  sameTokenizerFile,
  type Vocabulary,
  vocabularyOf,
} from './vocabulary';

export interface ResolvedVocabulary {
  /** Source of the tokenizer files. */
  from: Vocabulary;
  /** The vocabulary all models were brought to; absent where they were left alone. */
  output?: OutputVocabulary;
  /** Tokens of the model whose config the output takes; present where the output has another vocabulary. */
  config?: KnownVocabulary;
  /** True when the models differ and the recipe does not resolve it: the plan has an error for it. */
  asked: boolean;
  info: VocabularyInfo;
}

interface VocabularyQuestion {
  recipe: Recipe;
  /** Models that are merged, the reference (base, else the first) first. */
  models: readonly Model[];
  /** The base, where it takes part in the arithmetic. */
  base: Model | undefined;
  /** The model that the output's config is of, and that `tokenizer_source: base` means. */
  config: Model;
  /** The model that `tokenizer_source` names, else `config`. */
  source: Model;
}

/** Settles the vocabulary, changing the models' embeddings and heads in place. @throws AmalgamError `Canceled` only */
export async function resolveVocabulary(
  question: VocabularyQuestion,
  problems: Problems,
): Promise<ResolvedVocabulary> {
  const { recipe, models, source } = question;
  const chosen = recipe.tokenizerSource !== undefined;
  const vocabularies = models.map(vocabularyOf);
  const from = vocabularies.find(({ ref }) => ref === source.ref) ?? vocabularyOf(source);
  const all = vocabularies.includes(from) ? vocabularies : [...vocabularies, from];
  const first = all[0]!;
  const alike = (await Promise.all(all.map((v) => isAlike(first, v, chosen)))).every(Boolean);
  const sized = recipe.tokenizer !== undefined;
  if (alike && !sized) {
    return { from, asked: false, info: infoOf(all, [], from) };
  }

  // a source without a tokenizer.json has no vocabulary to be brought to; its files are taken all the same
  const nameless = from.file === undefined && !vocabularies.includes(from) && !sized;
  const compared = nameless ? vocabularies : all;
  const read = await Promise.all(compared.map(knownVocabulary));
  const known = assumed(compared, read, problems);
  const differences = known.flatMap((v) => differenceOf(known[0], v));
  const words = differences.flatMap((d) => d.words);
  const info = infoOf(compared, words, from, known);
  if (!chosen || nameless) {
    const asked = ask(compared, known, differences, problems);
    return { from, asked, info: info };
  }
  if (known.every((v) => v !== undefined) && differences.length === 0 && !sized) {
    return { from, asked: false, info: info };
  }
  const unknown = read.filter((_, i) => !known[i]) as string[];
  if (unknown.length > 0) {
    problems.error(
      'VocabularyUnknown',
      `The vocabularies cannot be unified: ${unknown.join('; ')}.`,
      'Put the tokenizer.json of that model into its folder, or leave the model out.',
    );
    return { from, asked: true, info: info };
  }
  return resolve(question, known as KnownVocabulary[], from, info, problems);
}

function resolve(
  { recipe, models, base, config }: VocabularyQuestion,
  known: readonly KnownVocabulary[],
  source: Vocabulary,
  info: VocabularyInfo,
  problems: Problems,
): ResolvedVocabulary {
  const from = known.find(({ ref }) => ref === source.ref)!;
  const taking = known.slice(0, models.length);
  const output = outputVocabulary(recipe, from, taking, problems);
  if (!output) return { from, asked: true, info: info };
  const tokenModels = models.map((model, i): TokenModel => ({ model, vocabulary: taking[i]! }));
  const at = base && models.indexOf(base);
  const fates = mapTokenRows(tokenModels, at, output, recipe.tokenizer?.tokens ?? [], problems);
  sayOutput(output, taking, fates, problems);
  const donor = known.find(({ ref }) => ref === config.ref);
  return {
    from,
    output,
    ...(donor ? { config: donor } : {}),
    asked: false,
    info: {
      ...info,
      output: { from: from.ref, tokens: output.ids.size, rows: output.rows },
    },
  };
}

/** Alike as far as files show. Rows that nobody knows, and a source that is not merged, are no difference. */
async function isAlike(first: Vocabulary, other: Vocabulary, chosen: boolean): Promise<boolean> {
  const rows = first.rows === undefined || other.rows === undefined || first.rows === other.rows;
  if (!rows) return false;
  // without a tokenizer.json there is nothing to compare, and nothing that could be asked for
  if ((!first.file || !other.file) && !chosen) return true;
  return first.file === other.file || sameTokenizerFile(first, other);
}

/** A model without a tokenizer.json and with as many rows as the first one has its tokens, as mergekit takes it. */
function assumed(
  all: readonly Vocabulary[],
  read: readonly (KnownVocabulary | string)[],
  problems: Problems,
): (KnownVocabulary | undefined)[] {
  const first = read[0]!;
  return read.map((found, i) => {
    const vocabulary = all[i]!;
    if (typeof found !== 'string') return found;
    if (typeof first === 'string' || vocabulary.file || vocabulary.rows !== first.rows) return undefined;
    problems.warn(
      'TokenizerAssumed',
      `${vocabulary.path} has no tokenizer.json; its tokens are taken to be those of ${first.ref}.`,
      'Put its own tokenizer.json into its folder, if it has another one.',
    );
    return { ...vocabulary, tokens: first.tokens, rows: first.rows, ids: first.ids };
  });
}

interface Difference {
  ref: string;
  tokens: TokenDifference;
  rows: [number, number];
  words: string[];
}

function differenceOf(first: KnownVocabulary | undefined, other: KnownVocabulary | undefined): Difference[] {
  if (!first || !other || first === other) return [];
  const tokens = tokenDifference(first.ids, other.ids);
  const words = tokenDifferenceWords(tokens, first.ref, other.ref);
  if (first.rows !== other.rows) {
    words.unshift(
      `${other.ref} has ${counted(other.rows, 'row')} in its embedding, ${first.ref} has ${first.rows}.`,
    );
  }
  return words.length === 0 ? [] : [{ ref: other.ref, tokens, rows: [first.rows, other.rows], words }];
}

const CHOICE =
  'Choose the vocabulary of the output: tokenizer_source: base, the name of a model, or union (every token of all). Amalgam never cuts or pads a vocabulary by itself.';

/** @returns true when the recipe has to resolve it before anything can be merged */
function ask(
  all: readonly Vocabulary[],
  known: readonly (KnownVocabulary | undefined)[],
  differences: readonly Difference[],
  problems: Problems,
): boolean {
  const first = all[0]!;
  let asked = false;
  for (const [i, { ref, rows }] of all.entries()) {
    const found = differences.find((d) => d.ref === ref);
    const sizes = rows !== undefined && first.rows !== undefined && rows !== first.rows;
    if (sizes || (found && found.tokens.moved.count > 0)) {
      asked = true;
      const words = known[i] && known[0] ? tokenDifferenceWords(found!.tokens, first.ref, ref) : [];
      const opening = sizes
        ? `${ref} has a vocabulary of ${rows}, but ${first.ref} has ${first.rows}.`
        : `The tokens of ${ref} have other ids than those of ${first.ref}.`;
      problems.error('VocabularyMismatch', [opening, ...words].join(' '), CHOICE);
    } else if (found) {
      problems.warn(
        'VocabulariesDiffer',
        `${found.words.join(' ')} The recipe says nothing else, so rows are merged by index.`,
        `That is right where tokens were only renamed. Otherwise: ${CHOICE}`,
      );
    }
  }
  if (asked || differences.length > 0) return asked;
  const others = all.filter(({ file }, i) => i > 0 && file && file !== first.file);
  if (others.length === 0) return false;
  const same = known.every((v) => v !== undefined);
  const names = nameSome(others.map(({ ref }) => ref));
  const have = others.length === 1 ? 'has' : 'have';
  problems.add({
    severity: same ? 'note' : 'warning',
    code: 'TokenizersDiffer',
    message: `${names} ${have} another tokenizer.json than ${first.ref}${same ? ', with the same tokens under the same ids' : ''}.`,
    remedy: same
      ? 'No action needed: the output takes the settings of the tokenizer it is given.'
      : 'When only settings differ, this is harmless. When tokens stand for other words, the merged model writes gibberish: check before you merge.',
  });
  return false;
}

/** Adds the notes on the output's vocabulary: where it comes from, and what is lost. */
function sayOutput(
  { from, ids, rows }: OutputVocabulary,
  models: readonly KnownVocabulary[],
  { zero, averaged }: { zero: string[]; averaged: number },
  problems: Problems,
): void {
  const appended = [...ids.keys()].filter((token) => !from.tokens.ids.has(token)).length;
  const spare = rows - ids.size;
  const parts = [
    `The output has ${counted(ids.size, 'token')} in ${counted(rows, 'row')}: those of ${from.ref}${appended > 0 ? ` and ${appended} more` : ''}.`,
    spare > 0
      ? `${counted(spare, 'row')} without a token ${spare === 1 ? 'is' : 'are'} the mean of the others.`
      : '',
    averaged > 0
      ? `${counted(averaged, 'token')} that several models have, and not all, ${averaged === 1 ? 'begins as its mean where it is' : 'begin as their mean where they are'} missing.`
      : '',
  ];
  problems.note(
    'VocabularyOutput',
    parts.filter(Boolean).join(' '),
    'No action needed. Rows follow their tokens, whatever ids the models have for them.',
  );
  for (const model of models) {
    const lost = [...model.ids.keys()].filter((token) => !ids.has(token));
    if (lost.length === 0) continue;
    problems.note(
      'TokensLeftOut',
      `${lost.length} ${lost.length === 1 ? 'token' : 'tokens'} of ${model.ref} ${lost.length === 1 ? 'is' : 'are'} not in the output: ${nameSome(lost)}.`,
      'To keep them, choose tokenizer_source: union.',
    );
  }
  if (zero.length > 0) {
    problems.warn(
      'TokensWithoutEmbedding',
      `${zero.length} ${zero.length === 1 ? 'token is' : 'tokens are'} in none of the models that are merged, so ${zero.length === 1 ? 'its row is' : 'their rows are'} zero: ${nameSome(zero)}.`,
      'Train the output, or do not use these tokens.',
    );
  }
}

function infoOf(
  all: readonly Vocabulary[],
  words: string[],
  from: Vocabulary,
  known: readonly (KnownVocabulary | undefined)[] = [],
): VocabularyInfo {
  return {
    models: all.map(({ ref, rows }, i) => ({
      ref,
      rows: rows ?? null,
      tokens: known[i]?.tokens.ids.size ?? null,
    })),
    words,
    output: { from: from.ref, tokens: null, rows: from.rows ?? null },
  };
}
