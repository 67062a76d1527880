import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findInHubCache, hubCacheFolder } from './hub-cache';
import { lookUpModels, publishedNames } from './model-lookup';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
let cache: string;

/** A snapshot as huggingface_hub lays it out: links into the blobs. */
async function snapshot(
  repo: string,
  files: Record<string, string | null>,
  commit = COMMIT,
): Promise<string> {
  const place = join(cache, `models--${repo.replace('/', '--')}`);
  const folder = join(place, 'snapshots', commit);
  for (const inside of ['refs', 'blobs', join('snapshots', commit)])
    await mkdir(join(place, inside), { recursive: true });
  await writeFile(join(place, 'refs', 'main'), commit);
  for (const [name, text] of Object.entries(files)) {
    const blob = join(place, 'blobs', `blob-of-${name}`);
    if (text !== null) await writeFile(blob, text);
    await symlink(blob, join(folder, name));
  }
  return folder;
}

beforeAll(async () => {
  cache = await mkdtemp(join(tmpdir(), 'amalgam-hub-cache-'));
});
afterAll(() => rm(cache, { recursive: true }));

test('is where huggingface_hub has it', () => {
  expect(hubCacheFolder({ HF_HUB_CACHE: '/a' })).toBe('/a');
  expect(hubCacheFolder({ HF_HOME: '/b' })).toBe('/b/hub');
  expect(hubCacheFolder({ XDG_CACHE_HOME: '/c' })).toBe('/c/huggingface/hub');
});

test('a whole snapshot is found by branch and by commit, with the license of its card', async () => {
  const folder = await snapshot('org/tuned', {
    'config.json': '{}',
    'model.safetensors': '..',
    'README.md': '---\nlanguage: en\nlicense: apache-2.0\n---\n# Tuned\n',
  });
  const found = { folder, repo: 'org/tuned', commit: COMMIT, license: 'apache-2.0' };
  expect(await findInHubCache('org/tuned', cache)).toEqual(found);
  expect(await findInHubCache(`org/tuned@${COMMIT}`, cache)).toEqual(found);
  expect(await findInHubCache('org/tuned@v2', cache)).toBeUndefined();
  const looked = await lookUpModels(['org/tuned'], [], cache);
  expect(publishedNames(looked).get('org/tuned')).toBe(`org/tuned@${COMMIT}`);
});

test.each<[string, Record<string, string | null>]>([
  ['config-only', { 'config.json': '{}' }],
  [
    'shard-missing',
    {
      'config.json': '{}',
      'a.safetensors': '.',
      'model.safetensors.index.json': '{"weight_map":{"x":"a.safetensors","y":"b.safetensors"}}',
    },
  ],
  ['blob-removed', { 'config.json': '{}', 'model.safetensors': null }],
])('one with %s is left to the Hub', async (name, files) => {
  await snapshot(`org/${name}`, files);
  expect(await findInHubCache(`org/${name}`, cache)).toBeUndefined();
});

test.each(['../up', 'org/../x', 'org/tuned@../../refs/main'])('%s leads nowhere', async (id) => {
  expect(await findInHubCache(id, cache)).toBeUndefined();
});
