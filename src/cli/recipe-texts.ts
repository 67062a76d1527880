import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { NO_IMATRIX } from '../formats/gguf-type';
import type { Recipe } from '../formats/recipe';
import type { CalibrationText } from '../reports/importance';
import { parseTokens } from './input-files';

/** The word for text that a model writes itself. */
const SELF = 'self';

/** Names of the texts that a recipe's models, or its output, read. */
export function calibrationNames({ parameters, models = [], amalgam }: Recipe): string[] {
  const values = [parameters, ...models.map((m) => m.parameters)].map((p) => p.calibration);
  const names = new Set([...values, amalgam.imatrix].filter((v) => typeof v === 'string'));
  return [...names].filter((name) => name !== SELF && name !== NO_IMATRIX);
}

/**
 * The texts of a recipe that are files in one of the places; a `.json` file is an array of token ids. The plan says what
 * is missing.
 * @throws AmalgamError `NotFound` for a file that is there and cannot be read, `Usage` for a `.json` file of anything else
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
      found.push({ name, text: isTokensFile(name) ? parseTokens(text, name) : text });
      break;
    }
  }
  return found;
}

/** Whether a calibration of this name is an array of token ids. */
export function isTokensFile(name: string): boolean {
  return name.toLowerCase().endsWith('.json');
}

async function readIfThere(path: string, name: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new AmalgamError(
      'NotFound',
      `${name} cannot be read: ${message}.`,
      'Give the path of a text file.',
    );
  }
}
