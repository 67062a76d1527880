import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lookUpModels } from './model-lookup';

let root: string;
let places: string[];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'amalgam-lookup-'));
  places = [join(root, 'recipes'), join(root, 'inner')];
  await mkdir(join(root, 'recipes', 'both'), { recursive: true });
  await mkdir(join(root, 'inner', 'both'), { recursive: true });
  await mkdir(join(root, 'inner', 'owner', 'name'), { recursive: true });
  await mkdir(join(root, 'inner', 'odd@name'), { recursive: true });
  await writeFile(join(root, 'inner', 'file'), '');
});

afterAll(() => rm(root, { recursive: true }));

test('a folder beside the recipe comes before one in the working directory, and both before the Hub', async () => {
  expect(
    await lookUpModels(['both', 'owner/name', 'odd@name', 'other/name', '../inner/both'], places),
  ).toEqual([
    { name: 'both', folder: join(root, 'recipes', 'both') },
    { name: 'owner/name', folder: join(root, 'inner', 'owner', 'name') },
    { name: 'odd@name', folder: join(root, 'inner', 'odd@name') },
    { name: 'other/name' },
    { name: '../inner/both', folder: join(root, 'inner', 'both') },
  ]);
});

test('a revision, an old single name and a plain file are left to the Hub', async () => {
  expect(await lookUpModels(['owner/name@refs/pr/1', 'gpt2', 'file'], places)).toEqual([
    { name: 'owner/name@refs/pr/1' },
    { name: 'gpt2' },
    { name: 'file' },
  ]);
});

test.each(['./gone', '../gone', '/gone/away', 'a/b/c'])(
  '%s can only be a folder, and is not there',
  async (name) => {
    await expect(lookUpModels([name], places)).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringContaining(`There is no folder ${name}`),
    });
  },
);
