import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { claimedSha256 } from './folder-listing';
import { checkSnapshot, findInHubCache, hubCacheFolder, lookUpModels, publishedNames } from './model-lookup';

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
  const found = {
    folder,
    repo: 'org/tuned',
    commit: COMMIT,
    member: { id: 'org/tuned', parents: [], license: 'apache-2.0' },
  };
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
  [
    'index-damaged',
    { 'config.json': '{}', 'a.safetensors': '.', 'model.safetensors.index.json': '{"weight_map":{"x":1}}' },
  ],
  [
    'index-leading-out',
    {
      'config.json': '{}',
      'model.safetensors.index.json': '{"weight_map":{"x":"../../refs/main"}}',
    },
  ],
])('one with %s is left to the Hub', async (name, files) => {
  await snapshot(`org/${name}`, files);
  expect(await findInHubCache(`org/${name}`, cache)).toBeUndefined();
});

test.each(['../up', 'org/../x', 'org/tuned@../../refs/main'])('%s leads nowhere', async (id) => {
  expect(await findInHubCache(id, cache)).toBeUndefined();
});

test('R63: a cache that others may write into: a card that never ends, a branch that is a folder', async () => {
  const folder = await snapshot('org/shared', { 'config.json': '{}', 'model.safetensors': '..' });
  await symlink('/dev/zero', join(folder, 'README.md'));
  expect(await findInHubCache('org/shared', cache)).toMatchObject({
    folder,
    repo: 'org/shared',
    commit: COMMIT,
  });
  await rm(join(cache, 'models--org--shared', 'refs', 'main'));
  await mkdir(join(cache, 'models--org--shared', 'refs', 'main'));
  expect(await findInHubCache('org/shared', cache)).toBeUndefined();
});

test('R63: a small file that was changed in the cache is refused, a weight file is said to be looked at', async () => {
  // git hash-object of “{}”
  const location = join(cache, '9e26dfeeb6e641a33dae4961196235bdb965b21b');
  const file = { path: 'config.json', location, size: 2 };
  await writeFile(location, '{}');
  await checkSnapshot([file]);
  expect(claimedSha256(file)).toBeUndefined();
  await writeFile(location, '[]');
  await expect(checkSnapshot([file])).rejects.toMatchObject({
    code: 'IntegrityError',
    message: expect.stringContaining('config.json in the Hugging Face cache'),
  });
  const blob = 'ab'.repeat(32);
  expect(claimedSha256({ path: 'w', location: join(cache, blob), size: 1 })).toEqual({ claimedSha256: blob });
});
