import { stat } from 'node:fs/promises';
import { isAbsolute, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { isRepoId } from '../formats/hub-id';
import { displayName } from '../formats/names';

/** Where a name in a recipe leads. */
export type FoundModel = { name: string; folder: string } | { name: string; folder?: undefined };

/**
 * Looks every name up as a folder beside the recipe, then as a folder in the working directory; a name that is
 * neither is taken for a Hub id.
 *
 * @param places folders to look in, in order
 * @throws NotFound for a name that is no folder and cannot be a Hub id either.
 */
export async function lookUpModels(names: string[], places: string[]): Promise<FoundModel[]> {
  return Promise.all(names.map((name) => lookUp(name, places)));
}

async function lookUp(name: string, places: string[]): Promise<FoundModel> {
  const candidates = [...new Set(isAbsolute(name) ? [name] : places.map((place) => resolve(place, name)))];
  for (const folder of candidates) {
    if (await isFolder(folder)) return { name, folder };
  }
  if (isRepoId(name.replace(/@.*$/, ''))) return { name };
  throw new AmalgamError(
    'NotFound',
    `There is no folder ${displayName(name)}; looked at ${candidates.map((path) => displayName(path)).join(' and ')}.`,
    'Give the path of a model folder, from the recipe or from the working directory, or a Hub id such as owner/name.',
  );
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}
