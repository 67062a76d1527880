import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listFolder } from './folder-listing';

let root: string;

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'amalgam-list-')));
});

afterEach(() => rm(root, { recursive: true }));

test('R52: a link to a file outside of the model is refused by name', async () => {
  await mkdir(join(root, 'model'));
  await writeFile(join(root, 'secret'), 'root:x');
  await writeFile(join(root, 'model-of-mine'), '');
  for (const outside of ['secret', 'model-of-mine']) {
    const link = join(root, 'model', 'tokenizer.model');
    await symlink(join(root, outside), link);
    await expect(listFolder(join(root, 'model'))).rejects.toMatchObject({
      code: 'UnsafePath',
      message: expect.stringContaining(
        `tokenizer.model in ${join(root, 'model')} is a link to ${join(root, outside)}`,
      ),
    });
    await rm(link);
  }
});

test('R52: links within the folder and to the blobs of the same cached repository are followed, no others', async () => {
  const repository = join(root, 'models--a--b');
  const snapshot = join(repository, 'snapshots', 'c0ffee');
  await mkdir(snapshot, { recursive: true });
  await mkdir(join(repository, 'blobs'));
  await mkdir(join(root, 'models--a--other', 'blobs'), { recursive: true });
  await writeFile(join(repository, 'blobs', '1'), '12');
  await writeFile(join(root, 'models--a--other', 'blobs', '2'), '12');
  await symlink('../../blobs/1', join(snapshot, 'config.json'));
  await symlink('config.json', join(snapshot, 'same.json'));
  await symlink(snapshot, join(root, 'by-link'));
  for (const folder of [snapshot, join(root, 'by-link')]) {
    const { files } = await listFolder(folder);
    expect([...files.values()].map(({ path, size }) => [path, size])).toEqual([
      ['config.json', 2],
      ['same.json', 2],
    ]);
    expect(files.get('config.json')!.location).toBe(join(repository, 'blobs', '1'));
  }
  await symlink('../../../models--a--other/blobs/2', join(snapshot, 'model.safetensors'));
  await expect(listFolder(snapshot)).rejects.toMatchObject({ code: 'UnsafePath' });
});

test('R53: links to nothing are named and left out; what cannot be a model is said to be none', async () => {
  await writeFile(join(root, 'config.json'), '{}');
  await symlink('gone', join(root, 'model.safetensors'));
  await symlink('circle', join(root, 'circle'));
  const { files, dangling } = await listFolder(root);
  expect([[...files.keys()], dangling.sort()]).toEqual([['config.json'], ['circle', 'model.safetensors']]);
  await expect(listFolder('/')).rejects.toMatchObject({ code: 'LimitExceeded' });
  await expect(listFolder(join(root, 'gone'))).rejects.toMatchObject({ code: 'NotFound' });
  const many = join(root, 'many');
  await mkdir(many);
  await Promise.all(Array.from({ length: 10_001 }, (_, i) => writeFile(join(many, `${i}`), '')));
  await expect(listFolder(many)).rejects.toMatchObject({ code: 'LimitExceeded' });
  await rm(many, { recursive: true });
  await mkdir(join(root, '1/2/3/4/5/6/7/8/9'), { recursive: true });
  await expect(listFolder(root)).rejects.toMatchObject({ code: 'LimitExceeded' });
});
