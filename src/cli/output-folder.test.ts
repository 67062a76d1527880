import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { beginOutputFolder } from './output-folder';

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'amalgam-output-'));
});

afterEach(() => rm(root, { recursive: true }));

async function* body(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield new TextEncoder().encode(text);
}

describe('beginOutputFolder', () => {
  test('the folder takes its name on commit, whole', async () => {
    const out = join(root, 'a', 'b', 'merged');
    const output = await beginOutputFolder(out);
    expect(await output.append('model.safetensors', 0, body())).toBe(0);
    expect(await output.append('model.safetensors', 0, body('head', 'er '))).toBe(7);
    expect(await output.append('model.safetensors', 7, body('data'))).toBe(11);
    expect(await output.append('sub/config.json', 0, body('{}'))).toBe(2);
    expect(await readdir(join(root, 'a', 'b'))).not.toContain('merged');
    await output.commit([
      { path: 'model.safetensors', size: 11 },
      { path: 'sub/config.json', size: 2 },
    ]);
    await output.discard();
    expect(output.isCommitted).toBe(true);
    expect(await readdir(join(root, 'a', 'b'))).toEqual(['merged']);
    expect(await readFile(join(out, 'model.safetensors'), 'utf8')).toBe('header data');
    expect(await readFile(join(out, 'sub', 'config.json'), 'utf8')).toBe('{}');
  });

  test('an empty folder is taken, one with something in it and a file are not', async () => {
    await mkdir(join(root, 'empty'));
    await mkdir(join(root, 'full'));
    await writeFile(join(root, 'full', 'thesis.txt'), 'x');
    const output = await beginOutputFolder(join(root, 'empty'));
    await output.append('x', 0, body('1'));
    await output.commit([{ path: 'x', size: 1 }]);
    expect(await readdir(join(root, 'empty'))).toEqual(['x']);
    for (const name of ['full', 'full/thesis.txt']) {
      await expect(beginOutputFolder(join(root, name))).rejects.toMatchObject({
        code: 'DestinationNotEmpty',
      });
    }
    expect((await readdir(root)).sort()).toEqual(['empty', 'full']);
  });

  test('discard leaves nothing, not even the parents it made', async () => {
    await mkdir(join(root, 'kept'));
    const output = await beginOutputFolder(join(root, 'kept', 'new', 'deep', 'merged'));
    await output.append('x', 0, body('1'));
    await output.discard();
    await output.discard();
    expect(await readdir(join(root, 'kept'))).toEqual([]);
  });

  test('a wrong offset, a name that leads out and a wrong size at the end are refused', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    await output.append('x', 0, body('12'));
    await expect(output.append('x', 3, body('4'))).rejects.toMatchObject({ code: 'DestinationFailed' });
    await expect(output.append('y', 1, body('4'))).rejects.toMatchObject({ code: 'DestinationFailed' });
    for (const path of ['../x', '/x', 'a/../../x', 'C:\\x', '']) {
      await expect(output.append(path, 0, body('1'))).rejects.toMatchObject({ code: 'UnsafePath' });
    }
    const commits = [
      [{ path: 'x', size: 1 }],
      [],
      [
        { path: 'x', size: 2 },
        { path: 'y', size: 0 },
      ],
    ];
    for (const files of commits) {
      await expect(output.commit(files)).rejects.toMatchObject({ code: 'DestinationFailed' });
    }
    await output.discard();
    expect(await readdir(root)).toEqual([]);
  });

  test('a folder that was filled meanwhile is not touched', async () => {
    const output = await beginOutputFolder(join(root, 'merged'));
    await output.append('x', 0, body('1'));
    await mkdir(join(root, 'merged'));
    await writeFile(join(root, 'merged', 'mine'), '');
    await expect(output.commit([{ path: 'x', size: 1 }])).rejects.toMatchObject({
      code: 'DestinationNotEmpty',
    });
    await output.discard();
    expect(await readdir(join(root, 'merged'))).toEqual(['mine']);
  });

  test('R47: an interrupted output is found again, unless its process still writes it', async () => {
    const out = join(root, 'merged');
    const first = await beginOutputFolder(out);
    await first.append('a', 0, body('123'));
    // without a journal there is nothing to go on from
    const other = await beginOutputFolder(out, true);
    expect(await other.find('a')).toBeUndefined();
    await other.discard();

    await first.appendJournal(0, body('line'));
    first.keep();
    await first.discard();
    const owner = (await readdir(root)).find((name) => name.startsWith('.merged'))!;
    await writeFile(join(root, owner, '.amalgam-run.pid'), String(process.ppid));
    await expect(beginOutputFolder(out, true)).rejects.toMatchObject({ code: 'Busy' });
    await writeFile(join(root, owner, '.amalgam-run.pid'), '999999999');

    const again = await beginOutputFolder(out, true);
    expect((await again.find('a'))?.size).toBe(3);
    expect((await again.find('journal'))?.size).toBe(4);
    await again.commit([{ path: 'a', size: 3 }]);
    expect(await readdir(root)).toEqual(['merged']);
    expect(await readdir(out)).toEqual(['a']);
  });
});
