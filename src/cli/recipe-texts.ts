import { readFile, stat } from 'node:fs/promises';
import { basename, isAbsolute, normalize, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { textOfFile, utf8Text } from '../formats/conversations';
import { NO_IMATRIX } from '../formats/gguf-type';
import type { Recipe } from '../formats/recipe';
import type { CalibrationText } from '../reports/importance';
import { parseTokens } from './input-files';

/** Longest text that is read: a thousand times what a calibration takes. */
const MAX_TEXT_BYTES = 2 ** 28;

/** The word for text that a model writes itself. */
const SELF = 'self';

/** Names of the texts that a recipe's models, or its output, read. */
export function calibrationNames({ parameters, models = [], amalgam }: Recipe): string[] {
  const values = [parameters, ...models.map((m) => m.parameters)].map((p) => p.calibration);
  const names = new Set([...values, amalgam.imatrix].filter((v) => typeof v === 'string'));
  return [...names].filter((name) => name !== SELF && name !== NO_IMATRIX);
}

/**
 * The texts of a recipe that are files in one of the places; a `.json` file is an array of token ids. The plan reports
 * missing ones.
 * @throws AmalgamError `NotFound` for a file that exists and cannot be read, `NotUtf8`, `LfsPointer`, `Usage` for a `.json` file of anything
 *   else
 */
export async function readCalibrationTexts(
  recipe: Recipe,
  places: readonly string[],
): Promise<{ name: string; text: CalibrationText }[]> {
  const found: { name: string; text: CalibrationText }[] = [];
  for (const name of calibrationNames(recipe)) {
    for (const place of places) {
      const text = await readIfThere(resolve(place, name), name);
      if (text === undefined) continue;
      found.push({ name, text: isTokensFile(name) ? parseTokens(text, name) : textOfFile(name, text) });
      break;
    }
  }
  return found;
}

/**
 * Names of texts in the output, by their names in the recipe: as with models, published files must not reveal paths of
 * this disk. A path below the recipe is unchanged.
 */
export function publishedTexts(recipe: Recipe): Map<string, string> {
  const names = calibrationNames(recipe);
  const leadsOut = (name: string) => isAbsolute(name) || normalize(name).startsWith('..');
  const used = new Set(names.filter((name) => !leadsOut(name)));
  const published = new Map<string, string>();
  for (const name of names.filter(leadsOut)) {
    const short = basename(name);
    let free = short;
    for (let i = 2; used.has(free); i++) free = `${i}-${short}`;
    used.add(free);
    published.set(name, free);
  }
  return published;
}

/** The same recipe with its texts renamed. */
export function renameTexts(recipe: Recipe, renamed: ReadonlyMap<string, string>): Recipe {
  const copy = structuredClone(recipe);
  for (const { parameters } of [copy, ...(copy.models ?? [])]) {
    const { calibration } = parameters;
    if (typeof calibration === 'string') parameters.calibration = renamed.get(calibration) ?? calibration;
  }
  const { imatrix } = copy.amalgam;
  if (imatrix !== undefined) copy.amalgam.imatrix = renamed.get(imatrix) ?? imatrix;
  return copy;
}

/** Whether a calibration of this name is an array of token ids. */
function isTokensFile(name: string): boolean {
  return name.toLowerCase().endsWith('.json');
}

async function readIfThere(path: string, name: string): Promise<string | undefined> {
  try {
    // a foreign recipe may name a device that never ends
    const stats = await stat(path);
    if (!stats.isFile()) throw new Error('it is not a file');
    if (stats.size > MAX_TEXT_BYTES) throw new Error(`it is longer than ${MAX_TEXT_BYTES} bytes`);
    return utf8Text(new Uint8Array(await readFile(path)), name);
  } catch (thrown) {
    if (thrown instanceof AmalgamError) throw thrown;
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new AmalgamError(
      'NotFound',
      `${name} cannot be read: ${message}.`,
      'Give the path of a text file.',
    );
  }
}
