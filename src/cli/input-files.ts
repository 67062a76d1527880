/** Texts and token ids that verbs read from files. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { parseJson } from '../formats/strict-json';
import { textOfFile } from '../formats/text-file';
import type { Options } from '../reports/option';
import { usage } from './arguments';

/** A file of text, or of token ids; the path as typed. */
export type InputFile = { textFile: string } | { tokensFile: string };

/** @throws NotFound */
export async function readTextFile(name: string, workingFolder: string): Promise<string> {
  return readFile(resolve(workingFolder, name), 'utf8').catch((thrown: Error) => {
    throw new AmalgamError(
      'NotFound',
      `${name} cannot be read: ${thrown.message}.`,
      'Give the path of a file.',
    );
  });
}

/** The text of a file, or of the rows of a `.jsonl` file. @throws NotFound, TextEmpty; JsonInvalid naming the line */
export async function readText(name: string, workingFolder: string): Promise<string> {
  return textOfFile(name, await readTextFile(name, workingFolder));
}

/** @throws as {@link readText}; Usage unless a `.json` file is an array of token ids */
export async function readInput(
  input: InputFile,
  workingFolder: string,
): Promise<{ text: string } | { ids: number[] }> {
  if ('textFile' in input) return { text: await readText(input.textFile, workingFolder) };
  const name = input.tokensFile;
  return { ids: parseTokens(await readTextFile(name, workingFolder), name) };
}

/** An array of token ids. @throws Usage for anything else, and what reading JSON throws */
export function parseTokens(text: string, name: string): number[] {
  const ids = parseJson(text, name);
  if (Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id) && id >= 0)) return ids as number[];
  throw new AmalgamError('Usage', `${name} is not an array of token ids.`, 'Write it as [1, 403, 407, …].');
}

/** Options for the text that a result is measured on. */
export const evaluationOptions = {
  evalText: { kind: 'text', argument: 'FILE', help: 'A text to measure the result on.', either: 'measured' },
  evalTokens: { kind: 'text', argument: 'IDS.json', help: 'A text as token ids.', either: 'measured' },
} as const satisfies Options;

/** The text or the ids that were given, or neither. @throws Usage for both */
export function inputOf(
  verb: string,
  text: string | undefined,
  tokens: string | undefined,
  prefix = '',
): InputFile | undefined {
  if (text !== undefined && tokens !== undefined) {
    throw usage(`${verb} takes either --${prefix}text FILE or --${prefix}tokens IDS.json, not both.`);
  }
  if (text !== undefined) return { textFile: text };
  return tokens === undefined ? undefined : { tokensFile: tokens };
}
