/** Models that other programs have downloaded already: the cache of huggingface_hub (`file_download.py`, `constants.py`). */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { isCommit, isRepoId } from '../formats/hub-id';
import { displayName } from '../formats/names';
import { parseShardIndex, SHARD_INDEX } from '../formats/shard-index';
import type { ListedFile } from './folder-listing';

/** A whole snapshot of a model repository. */
export interface CachedModel {
  folder: string;
  repo: string;
  commit: string;
  license?: string;
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
  const license = /^---\r?\n(?:.*\r?\n)*?license: *([\w.-]+) *\r?\n/.exec(card)?.[1];
  return { folder, repo, commit, ...(license === undefined ? {} : { license }) };
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
    return [...parseShardIndex(index, SHARD_INDEX).weightMap.values()];
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return [];
    throw thrown;
  }
}

/** The sha256 that the name of a blob in LFS is. */
export function claimedSha256({ location }: ListedFile): { claimedSha256: string } | undefined {
  const name = basename(location);
  return /^[0-9a-f]{64}$/.test(name) ? { claimedSha256: name } : undefined;
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
