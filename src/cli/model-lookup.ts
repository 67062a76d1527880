import { stat } from 'node:fs/promises';
import { basename, isAbsolute, normalize, resolve, sep } from 'node:path';
import { AmalgamError } from '../errors';
import { addressedId, isRepoId } from '../formats/hub-id';
import { displayName } from '../formats/names';
import { type CachedModel, findInHubCache } from './hub-cache';

/** Where a name in a recipe leads. */
type FoundModel =
  | { name: string; folder: string; snapshot?: CachedModel; id?: undefined }
  /** On the Hub, under another name where it was named by an address. */
  | { name: string; id?: string; folder?: undefined; snapshot?: undefined };

/**
 * Looks every name up as a folder beside the recipe, then as a folder in the working directory, then in the cache of
 * huggingface_hub; a name that is none of them is taken for a Hub id, or for the address of a page of the Hub.
 *
 * @param places folders to look in, in order
 * @param cache of huggingface_hub; not looked into where none is given
 * @param hubUrl the hub in use
 * @throws NotFound for a name that is no folder and cannot be a Hub id either, UnsafeName for the address of anything else.
 */
export async function lookUpModels(
  names: string[],
  places: string[],
  cache?: string,
  hubUrl?: string,
): Promise<FoundModel[]> {
  return Promise.all(names.map((name) => lookUp(name, places, cache, hubUrl)));
}

/**
 * Checks that every `model+adapter` means what it says.
 * @throws Usage for more than one adapter, and for a folder whose own name has a `+`
 */
export async function requireModelNames(refs: readonly string[], places: readonly string[]): Promise<void> {
  for (const ref of refs.filter((text) => text.includes('+'))) {
    if (ref.split('+').length > 2) {
      throw new AmalgamError(
        'Usage',
        `${displayName(ref)} has more than one adapter.`,
        'Write model+adapter; in a recipe every adapter is a model of its own, and task_arithmetic of weight 1 puts all on one base.',
      );
    }
    const [model = ''] = ref.split('+');
    const isThere = (name: string) =>
      Promise.all(places.map((place) => isFolder(resolve(place, name)))).then((found) =>
        found.includes(true),
      );
    if ((await isThere(ref)) && !(await isThere(model))) {
      throw new AmalgamError(
        'Usage',
        `A folder cannot be named ${displayName(ref)} here: a + stands between a model and its adapter.`,
        'Rename the folder, or give it by a link without a + in its name.',
      );
    }
  }
}

/**
 * Names of local folders in the output, by their names in the recipe. The model card and the metadata are published, so
 * they must not reveal paths of this disk or the user's name. A path below the recipe is unchanged.
 *
 * @param taken names that mean something else
 */
export function publishedNames(
  found: readonly FoundModel[],
  taken: readonly string[] = [],
): Map<string, string> {
  const used = new Set([
    ...taken,
    ...found.flatMap(({ name, folder }) => (folder === undefined ? [name] : [])),
  ]);
  const names = new Map<string, string>();
  for (const { name, id, folder, snapshot } of found) {
    if (id !== undefined) names.set(name, id);
    if (folder === undefined) continue;
    if (snapshot) {
      names.set(name, `${snapshot.repo}@${snapshot.commit}`);
      continue;
    }
    const short = shortName(name, folder);
    let published = short;
    for (let i = 2; used.has(published); i++) published = `${short}-${i}`;
    used.add(published);
    names.set(name, published);
  }
  return names;
}

function shortName(name: string, folder: string): string {
  const path = normalize(name);
  if (!isAbsolute(name) && !path.startsWith('..') && path !== '.') return name;
  // a snapshot of a Hub cache is called after its commit; its repository has the name
  const [, repository] =
    /models--([^/\\]+)[/\\]snapshots[/\\][^/\\]+$/.exec(folder.split(sep).join('/')) ?? [];
  return (repository ?? basename(folder)).replace(/[+@]/g, '-') || 'model';
}

async function lookUp(
  name: string,
  places: string[],
  cache: string | undefined,
  hubUrl: string | undefined,
): Promise<FoundModel> {
  const candidates = [...new Set(isAbsolute(name) ? [name] : places.map((place) => resolve(place, name)))];
  for (const folder of candidates) {
    if (await isFolder(folder)) return { name, folder };
  }
  const id = addressedId(name, hubUrl);
  const snapshot = cache === undefined ? undefined : await findInHubCache(id ?? name, cache);
  if (snapshot) return { name, folder: snapshot.folder, snapshot };
  if (id !== undefined) return { name, id };
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
