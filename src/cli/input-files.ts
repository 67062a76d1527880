/** Texts and token ids that verbs read from files. */
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { textOfFile, utf8Text } from '../formats/conversations';
import { HASHES_FILE, withOutputHash } from '../formats/output-hashes';
import { parseJson } from '../formats/strict-json';
import type { OptionValues } from '../reports/option';
import type { TaskSource } from '../reports/tasks';
import { bufferSource } from '../sources/byte-source';
import { treeOf } from '../sources/tree-hash';
import type { itemOptions } from '../tasks/options';
import { writeWhole } from './report-file';

/** A file of text, or of token ids; the path as typed. */
type InputFile = { textFile: string } | { tokensFile: string };

/** @throws AmalgamError `NotFound`, `NotUtf8`, `LfsPointer` */
export async function readTextFile(name: string, workingFolder: string): Promise<string> {
  return utf8Text(await readGiven(resolve(workingFolder, name), name, 'Give the path of a file.'), name);
}

/** The bytes of a file that was named by a person. @throws AmalgamError `NotFound` with the reason in words */
export async function readGiven(path: string, name: string, hint: string): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readFile(path).catch((thrown: NodeJS.ErrnoException) => {
    const known = { ENOENT: 'there is no such file', EISDIR: 'it is a folder' }[thrown.code ?? ''];
    throw new AmalgamError('NotFound', `${name} cannot be read: ${known ?? thrown.message}.`, hint);
  });
  return new Uint8Array(bytes);
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

// A task that is named on the command line.

/** A name, or a file of rows. @throws AmalgamError that of a file that cannot be read */
export async function taskSource(name: string, workingFolder: string): Promise<TaskSource> {
  if (!/[/.]/.test(name)) return { name };
  return { file: { name: basename(name), text: await readTextFile(name, workingFolder) } };
}

/** Which items of tasks are scored, and how. */
export function itemsOf({ limit, sampleSeed, fewshot }: OptionValues<typeof itemOptions>): {
  limit: number | null;
  fewshot: number | null;
  sampleSeed?: number;
} {
  return {
    limit: limit ?? null,
    fewshot: fewshot ?? null,
    ...(sampleSeed === undefined ? {} : { sampleSeed }),
  };
}

/** Changes a model card, and its hash in the list of hashes beside it. @throws what reading and writing a file throws */
export async function changeCard(card: string, change: (text: string) => string): Promise<void> {
  const text = change(await readTextFile(card, ''));
  await writeWhole(card, text);
  const hashes = join(dirname(card), HASHES_FILE);
  const found = await readFile(hashes, 'utf8').catch(() => undefined);
  if (found === undefined) return;
  const hash = await treeOf(bufferSource(new TextEncoder().encode(text), card));
  await writeWhole(hashes, withOutputHash(found, basename(card), hash));
}
