/** Models that other programs have downloaded already: the cache of huggingface_hub (`file_download.py`, `constants.py`). */
import { readdir, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { isCommit, isRepoId } from '../formats/hub-id';

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
 * The snapshot of `owner/name[@revision]`, of `main` where no revision is said; undefined where there is none, or not all
 * of its weights.
 */
export async function findInHubCache(id: string, cache: string): Promise<CachedModel | undefined> {
  const [repo = '', revision = 'main'] = id.split('@');
  if (!isRepoId(repo) || !repo.includes('/') || /(^|\/)\.\.?(\/|$)/.test(revision)) return undefined;
  const place = join(cache, `models--${repo.replace('/', '--')}`);
  const commit = isCommit(revision)
    ? revision
    : (await readFile(join(place, 'refs', revision), 'utf8').catch(() => '')).trim();
  if (!isCommit(commit)) return undefined;
  const folder = join(place, 'snapshots', commit);
  if (!(await isWhole(folder))) return undefined;
  const card = await readFile(join(folder, 'README.md'), 'utf8').catch(() => '');
  const license = /^---\r?\n(?:.*\r?\n)*?license: *([\w.-]+) *\r?\n/.exec(card)?.[1];
  return { folder, repo, commit, ...(license === undefined ? {} : { license }) };
}

/** Whether a config is there and all weights that it goes with: a program may have wanted the config alone. */
async function isWhole(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch((): string[] => []);
  if (!names.some((name) => /^(adapter_)?config\.json$/.test(name))) return false;
  const index = names.find((name) => name.endsWith('.safetensors.index.json'));
  const weights =
    index === undefined
      ? names.filter((name) => name.endsWith('.safetensors'))
      : Object.values(
          (JSON.parse(await readFile(join(folder, index), 'utf8')) as { weight_map: Record<string, string> })
            .weight_map,
        );
  // a link whose blob was removed is no file
  const sizes = await Promise.all(
    [...new Set(weights)].map((name) => stat(join(folder, name)).catch(() => undefined)),
  );
  return sizes.length > 0 && sizes.every((found) => found?.isFile());
}
