/** Two tokenizers: the same tokens under the same ids, and text split alike? */

import { errorReport } from '../../errors';
import { displayName } from '../../formats/names';
import { MAX_JSON_LENGTH, parseStrictJson } from '../../formats/strict-json';
import {
  readTokenizerJson,
  TOKENIZER_JSON_RULES,
  type TokenizerTokens,
  tokenDifference,
  tokenDifferenceWords,
} from '../../formats/tokenizer-json';
import type { Checkpoint } from '../../inputs/checkpoint';
import { jsonText } from '../../inputs/config-difference';
import { readSmallText } from '../../inputs/header';
import { findFile, type ModelFolder } from '../../sources/model-folder';
import type { TokenizerComparison, TokenSample } from './report';

const TOKENIZER = 'tokenizer.json';
const SETTINGS = 'tokenizer_config.json';
const MAX_BYTES = MAX_JSON_LENGTH;

/** Members of tokenizer.json beside the vocabulary that decide which ids a text becomes. */
const SPLITTING = ['normalizer', 'pre_tokenizer'] as const;
/** Others worth naming. */
const FRAMING = ['post_processor', 'decoder'] as const;
/** Settings of tokenizer_config.json worth naming. */
const NAMED_SETTINGS = [
  'bos_token',
  'eos_token',
  'pad_token',
  'unk_token',
  'add_bos_token',
  'add_eos_token',
  'model_max_length',
  'chat_template',
] as const;

/**
 * Compares the tokenizers of two checkpoints. A file that cannot be read makes the verdict `unknown` and is said in
 * words. @throws AmalgamError `Canceled` only
 */
export async function compareTokenizerFiles(
  base: Checkpoint,
  tuned: Checkpoint,
  signal?: AbortSignal,
): Promise<TokenizerComparison> {
  try {
    const settings = await compareSettings(base, tuned, signal);
    const comparison = await compareTokens(base, tuned, signal);
    return { ...comparison, words: [...comparison.words, ...settings] };
  } catch (thrown) {
    const { code, message } = errorReport(thrown);
    if (code === 'Canceled') throw thrown;
    return unknown(`The tokenizers cannot be compared: ${message}`);
  }
}

async function compareTokens(
  base: Checkpoint,
  tuned: Checkpoint,
  signal?: AbortSignal,
): Promise<TokenizerComparison> {
  const texts = await Promise.all([base, tuned].map(({ folder }) => readIf(folder, TOKENIZER, signal)));
  const [a, b] = texts;
  if (a === undefined || b === undefined) {
    const which =
      a === b ? 'neither model has a' : a === undefined ? 'the base has no' : 'the fine-tune has no';
    return unknown(`The tokenizers cannot be compared: ${which} ${TOKENIZER}.`);
  }
  const one = readTokenizerJson(a, `${base.path}/${TOKENIZER}`);
  if (a === b) {
    const size = one.ids.size;
    return {
      ...nothing,
      verdict: 'same-file',
      vocabulary: { base: size, finetuned: size },
      words: ['Both have the same tokenizer.'],
    };
  }
  return differencesOf(one, readTokenizerJson(b, `${tuned.path}/${TOKENIZER}`));
}

const none: TokenSample = { count: 0, examples: [] };
const nothing = { vocabulary: null, onlyInBase: none, onlyInFinetuned: none, moved: none };

function unknown(words: string): TokenizerComparison {
  return { ...nothing, verdict: 'unknown', words: [words] };
}

function differencesOf(a: TokenizerTokens, b: TokenizerTokens): TokenizerComparison {
  const tokens = tokenDifference(a.ids, b.ids);
  const words = tokenDifferenceWords(tokens, 'the base', 'the fine-tune');
  const sameIds = words.length === 0;
  const merge = a.merges.findIndex((pair, i) => pair !== b.merges[i]);
  const sameMerges = merge < 0 && a.merges.length === b.merges.length;
  if (!sameMerges) {
    const at = merge < 0 ? Math.min(a.merges.length, b.merges.length) : merge;
    words.push(
      `The lists of merges differ, ${a.merges.length} and ${b.merges.length} long, from number ${at + 1} on: text is split differently.`,
    );
  }
  const other = (key: string) => jsonText(a.rest.get(key) ?? null) !== jsonText(b.rest.get(key) ?? null);
  const splitting = SPLITTING.filter(other);
  const framing = FRAMING.filter(other);
  if (splitting.length > 0) words.push(`Text is prepared differently: ${splitting.join(' and ')} differ.`);
  if (framing.length > 0)
    words.push(`What is put around or made of the tokens differs: ${framing.join(' and ')}.`);
  const same = sameIds && sameMerges && splitting.length === 0;
  if (same) words.unshift('Both tokenizers give the same ids.');
  return {
    verdict: same ? 'same-tokens' : 'different',
    vocabulary: { base: a.ids.size, finetuned: b.ids.size },
    onlyInBase: tokens.onlyInFirst,
    onlyInFinetuned: tokens.onlyInSecond,
    moved: tokens.moved,
    words,
  };
}

/** Special tokens and the chat template, in words; nothing where they are equal. */
async function compareSettings(base: Checkpoint, tuned: Checkpoint, signal?: AbortSignal): Promise<string[]> {
  const [a, b] = await Promise.all([base, tuned].map(({ folder }) => settingsOf(folder, signal)));
  return NAMED_SETTINGS.flatMap((key) => {
    const [x, y] = [a!.get(key), b!.get(key)];
    if (x === y) return [];
    if (key === 'chat_template') {
      if (x === undefined) return ['Only the fine-tune has a chat template.'];
      return [y === undefined ? 'Only the base has a chat template.' : 'The chat templates differ.'];
    }
    return [`The ${key} is ${said(x)} in the base and ${said(y)} in the fine-tune.`];
  });
}

function said(value: string | undefined): string {
  return value === undefined ? 'not set' : displayName(value, 40);
}

/** Setting → its text; a token given as an object counts by its content. */
async function settingsOf(folder: ModelFolder, signal?: AbortSignal): Promise<Map<string, string>> {
  const text = await readIf(folder, SETTINGS, signal);
  const json =
    text === undefined
      ? undefined
      : parseStrictJson(text, `${folder.path}/${SETTINGS}`, TOKENIZER_JSON_RULES);
  const found = new Map<string, string>();
  for (const key of NAMED_SETTINGS) {
    const value = json instanceof Map ? json.get(key) : undefined;
    const content = value instanceof Map ? value.get('content') : value;
    if (content !== undefined && content !== null) found.set(key, jsonText(content));
  }
  const template = await readIf(folder, 'chat_template.jinja', signal);
  if (template !== undefined) found.set('chat_template', JSON.stringify(template));
  return found;
}

async function readIf(folder: ModelFolder, name: string, signal?: AbortSignal): Promise<string | undefined> {
  const file = findFile(folder, name);
  return file && readSmallText(file, folder.path, MAX_BYTES, signal);
}
