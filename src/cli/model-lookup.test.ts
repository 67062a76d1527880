import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { lookUpModels, publishedNames, requireModelNames } from './model-lookup';

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

test('a GGUF file is a model, by what it holds; one that is not there is not looked for on the Hub, but in a repository', async () => {
  await writeFile(join(root, 'inner', 'sha256-0a'), 'GGUF…');
  await writeFile(join(root, 'inner', 'other.gguf'), 'no such file');
  const of = async (name: string) => (await lookUpModels([name], places))[0];
  expect(await of('sha256-0a')).toEqual({ name: 'sha256-0a', folder: join(root, 'inner', 'sha256-0a') });
  expect(await of('owner/name/m.gguf@v1')).toEqual({ name: 'owner/name/m.gguf@v1' });
  const page = 'https://huggingface.co/owner/name/blob/main/m.gguf';
  expect(await of(page)).toEqual({ name: page, id: 'owner/name/m.gguf@main' });
  await writeFile(join(root, 'inner', 'lora.safetensors'), '');
  expect(await of('lora.safetensors')).toMatchObject({ folder: join(root, 'inner', 'lora.safetensors') });
  await expect(of('other.gguf')).rejects.toMatchObject({
    ...{ code: 'Usage', message: 'other.gguf is a file that holds no model.' },
  });
  for (const name of ['m.gguf', 'models/m.gguf', 'm.safetensors']) {
    await expect(of(name)).rejects.toMatchObject({
      ...{ code: 'NotFound', message: expect.stringContaining(`no file ${name}`) },
    });
  }
});

test('an address of the Hub is the model it leads to; a folder of that name comes before it', async () => {
  const of = (names: string[], hub?: string) => lookUpModels(names, places, undefined, hub);
  const page = 'https://huggingface.co/owner/name/tree/v1';
  const found = await of([page, 'hf.co/a/b', 'both']);
  expect(found.map(({ name, id }) => [name, id])).toEqual([
    [page, 'owner/name@v1'],
    ['hf.co/a/b', 'a/b'],
    ['both', undefined],
  ]);
  expect([...publishedNames(found)]).toEqual([
    [page, 'owner/name@v1'],
    ['hf.co/a/b', 'a/b'],
    ['both', 'both'],
  ]);
  expect(await of(['http://hub.test/a/b'], 'http://hub.test')).toEqual([
    { name: 'http://hub.test/a/b', id: 'a/b' },
  ]);
  await mkdir(join(root, 'inner', 'hf.co', 'x', 'y'), { recursive: true });
  expect((await of(['hf.co/x/y']))[0]!.folder).toBeDefined();
  await expect(of([`${page}/sub`])).rejects.toThrow('leads to the folder sub inside of owner/name');
  await expect(of(['https://example.org/a/b'])).rejects.toThrow('is not the hub in use');
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

test('a name with a wrong letter is answered with the folder or file that stands beside', async () => {
  await writeFile(join(root, 'inner', 'q.gguf'), '');
  for (const [name, meant] of [
    ['./bofh', './both'],
    ['../inner/owner/Nane', '../inner/owner/name'],
    [join(root, 'recipes', 'boht/'), join(root, 'recipes', 'both')],
    ['p.gguf', 'q.gguf'],
  ] as const)
    await expect(lookUpModels([name], places)).rejects.toThrow(`${name}; did you mean ${meant}? Looked at `);
});

test('a + is between a model and one adapter, whatever folders are called', async () => {
  await requireModelNames(['both+owner/name', 'gpt2+both', 'both'], places);
  await mkdir(join(root, 'inner', 'c+d'), { recursive: true });
  await expect(requireModelNames(['c+d'], places)).rejects.toThrow('cannot be named c+d');
  await expect(requireModelNames(['both+a+b'], places)).rejects.toThrow('more than one adapter');
  await mkdir(join(root, 'inner', 'c'));
  await requireModelNames(['c+d'], places);
});

test('R60: what is published names models, not the folders of somebody’s disk', () => {
  const found = [
    { name: '/home/ada/models/base', folder: '/home/ada/models/base' },
    { name: '../other/base', folder: '/home/ada/other/base' },
    { name: 'tuned/v2', folder: '/home/ada/recipes/tuned/v2' },
    { name: 'owner/name@main' },
    {
      name: '/home/ada/.cache/hub/models--org--name/snapshots/c0ffee',
      folder: '/home/ada/.cache/hub/models--org--name/snapshots/c0ffee',
    },
    { name: '/data/a+b@1', folder: '/data/a+b@1' },
    { name: '/data/half', folder: '/data/half' },
  ];
  const names = publishedNames(found, ['half']);
  expect(Object.fromEntries(names)).toEqual({
    '/home/ada/models/base': 'base',
    '../other/base': 'base-2',
    'tuned/v2': 'tuned/v2',
    '/home/ada/.cache/hub/models--org--name/snapshots/c0ffee': 'org--name',
    '/data/a+b@1': 'a-b-1',
    '/data/half': 'half-2',
  });
  expect([...names.values()].join()).not.toContain('ada');
});
