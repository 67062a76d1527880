import { createHash } from 'node:crypto';
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, normalize, resolve, sep } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { addressedId, hubFile, isCommit, isRepoId } from '../formats/hub-id';
import type { FamilyMember } from '../formats/model-family';
import { displayName, orMeant } from '../formats/names';
import { parseShardIndex, SHARD_INDEX } from '../formats/shard-index';
import { cardMember } from '../sources/published-recipe';
import type { ListedFile } from './folder-listing';

/** Where a name in a recipe leads. */
type FoundModel =
  | { name: string; folder: string; snapshot?: CachedModel; id?: undefined }
  /** On the Hub, under another name where it was named by an address. */
  | { name: string; id?: string; folder?: undefined; snapshot?: undefined };

/**
 * Looks every name up as a folder, or a file of weights, beside the recipe, then in the working directory, then in the cache of
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
    if ((await isFolder(folder)) || (await isModelFile(folder))) return { name, folder };
  }
  // names of models have been plain words
  const files = await Promise.all(candidates.map((path) => stat(path).catch(() => undefined)));
  if (/\.\w+$/.test(name) && files.some((file) => file?.isFile())) {
    throw new AmalgamError(
      'Usage',
      `${displayName(name)} is a file that holds no model.`,
      'Give the folder of a model, a GGUF file or a .safetensors file.',
    );
  }
  const id = addressedId(name, hubUrl);
  const plain = name.replace(/@.*$/, '');
  if (id === undefined && hubFile(plain).file !== undefined) return { name };
  if (id === undefined && /\.(?:gguf|safetensors)$/i.test(plain)) {
    throw new AmalgamError(
      'NotFound',
      `There is no file ${displayName(name)}${await orNeighbor(name, places)} Looked at ${candidates.map((path) => displayName(path)).join(' and ')}.`,
      'Give the path of the file, from the recipe or from the working directory; on the Hub a GGUF file is owner/name/file.gguf.',
    );
  }
  const snapshot = cache === undefined ? undefined : await findInHubCache(id ?? name, cache);
  if (snapshot) return { name, folder: snapshot.folder, snapshot };
  if (id !== undefined) return { name, id };
  if (isRepoId(plain)) return { name };
  throw new AmalgamError(
    'NotFound',
    `There is no folder ${displayName(name)}${await orNeighbor(name, places)} Looked at ${candidates.map((path) => displayName(path)).join(' and ')}.`,
    'Give the path of a model folder, from the recipe or from the working directory, or a Hub id such as owner/name.',
  );
}

/** `; did you mean samples/kitchen?`: of what is beside the place that a name leads to. */
export async function orNeighbor(name: string, places: readonly string[]): Promise<string> {
  const beside = places.map((place) => readdir(dirname(resolve(place, name))).catch((): string[] => []));
  const known = (await Promise.all(beside)).flat();
  return orMeant(basename(name), known, name.slice(0, name.lastIndexOf(basename(name))));
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/** Whether a path leads to a file of weights: GGUF whatever its name, since Ollama calls its files by their hash. */
async function isModelFile(path: string): Promise<boolean> {
  const file = await open(path).catch(() => undefined);
  if (!file) return false;
  try {
    if (!(await file.stat()).isFile()) return false;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return /\.safetensors$/i.test(path) || (bytesRead === 4 && buffer.toString() === 'GGUF');
  } finally {
    await file.close();
  }
}

// Models that other programs have downloaded already: the cache of huggingface_hub (`file_download.py`, `constants.py`).

/** A whole snapshot of a model repository. */
export interface CachedModel {
  folder: string;
  repo: string;
  commit: string;
  /** As its card says. */
  member: FamilyMember;
}

/** `HF_HUB_CACHE`, else `hub` in `HF_HOME`, else `~/.cache/huggingface/hub`. */
export function hubCacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const home = env.HF_HOME ?? join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'huggingface');
  return env.HF_HUB_CACHE ?? join(home, 'hub');
}

/**
 * The snapshot of `owner/name[@revision]`, of `main` without a revision; undefined where there is none, or not all
 * of its weights.
 */
export async function findInHubCache(id: string, cache: string): Promise<CachedModel | undefined> {
  const [repo = '', revision = 'main'] = id.split('@');
  if (!isRepoId(repo) || !repo.includes('/') || /(^|\/)\.\.?(\/|$)/.test(revision)) return undefined;
  const place = join(cache, `models--${repo.replace('/', '--')}`);
  const commit = isCommit(revision) ? revision : (await readSmall(join(place, 'refs', revision))).trim();
  if (!isCommit(commit)) return undefined;
  const folder = join(place, 'snapshots', commit);
  if (!(await isWhole(folder))) return undefined;
  const card = await readSmall(join(folder, 'README.md'));
  return { folder, repo, commit, member: cardMember(repo, card) };
}

/** Largest of the files that are read to look a model up: an index of 250 000 tensors. */
const MAX_SMALL_BYTES = 64 * 2 ** 20;

/** The text of a file; empty where there is none, or what is there is no file of such a size: others may write into a cache. */
async function readSmall(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  if (!stats?.isFile() || stats.size > MAX_SMALL_BYTES) return '';
  return readFile(path, 'utf8').catch(() => '');
}

/** The files an index names; none for what is no index. */
function weightFiles(index: string): string[] {
  try {
    return [...parseShardIndex(index, SHARD_INDEX).values()];
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return [];
    throw thrown;
  }
}

/**
 * Checks the small files of a snapshot against their names in `blobs`, git's sha1; weights are looked at when
 * they are hashed ({@link claimedSha256}).
 * @throws IntegrityError for one that was changed or damaged
 */
export async function checkSnapshot(files: Iterable<ListedFile>): Promise<void> {
  for (const { path, location, size } of files) {
    const name = basename(location);
    if (!/^[0-9a-f]{40}$/.test(name) || size > MAX_SMALL_BYTES) continue;
    const hash = createHash('sha1')
      .update(`blob ${size}\0`)
      .update(await readFile(location))
      .digest('hex');
    if (hash === name) continue;
    throw new AmalgamError(
      'IntegrityError',
      `${displayName(path)} in the Hugging Face cache has other bytes than its name there says: it was changed or damaged.`,
      'Remove the model from that cache (hf cache rm) and get it again.',
    );
  }
}

/** Whether a config is there and all weights that it goes with: a program may have wanted the config alone. */
async function isWhole(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch((): string[] => []);
  if (!names.some((name) => /^(adapter_)?config\.json$/.test(name))) return false;
  const index = names.find((name) => name.endsWith('.safetensors.index.json'));
  const weights =
    index === undefined
      ? names.filter((name) => name.endsWith('.safetensors'))
      : weightFiles(await readSmall(join(folder, index)));
  // a link whose blob was removed is no file
  const sizes = await Promise.all(
    [...new Set(weights)].map((name) => stat(join(folder, name)).catch(() => undefined)),
  );
  return sizes.length > 0 && sizes.every((found) => found?.isFile());
}
