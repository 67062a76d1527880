import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openOpfsFile, readWhole, removeStored, writeWhole } from '../../store/opfs-file';
import { diskLocks } from './locks';
import { diskDirectory, diskSource, makeFolders, openFile } from './storage';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'amalgam-storage-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('folders are made from the outermost that is missing; where one takes none, it is said', () => {
  const inner = join(folder, 'a/b/c');
  expect(makeFolders(inner)).toBe(join(folder, 'a'));
  expect(makeFolders(inner)).toBe(undefined);
  writeFileSync(join(inner, 'file'), '');
  for (const path of ['file', 'file/d'])
    expect(() => makeFolders(join(inner, path))).toThrow(/EEXIST|ENOTDIR/);
  // with Node's own `recursive` this never ends
  if (existsSync('/proc/self')) expect(() => makeFolders('/proc/cache')).toThrow(/ENOENT|EACCES|EPERM/);
});

test('R46: an output or an input that is gone is said in words', async () => {
  const location = join(folder, 'gone.safetensors');
  expect(() => openFile(location)).toThrow(
    expect.objectContaining({ code: 'DestinationFailed', message: expect.stringContaining('was moved') }),
  );
  const source = diskSource({ location, byteLength: 4, name: 'the weights' });
  await expect(source.read(0, 4)).rejects.toMatchObject({
    code: 'NotFound',
    message: expect.stringContaining('the weights cannot be read'),
  });
});

test('the store keeps, reads and removes files in a folder of the disk', async () => {
  const inside = await diskDirectory(folder).getDirectoryHandle('blobs', { create: true });
  await writeWhole(inside, 'a', new TextEncoder().encode('kept'), 'a');
  expect(new TextDecoder().decode(await readWhole(inside, 'a', 'a'))).toBe('kept');
  const file = await openOpfsFile(inside, 'a', 'a', 'create');
  file.writeAll(new Uint8Array([1, 2]), 6);
  expect([file.size(), ...file.read(4, 8)]).toEqual([8, 0, 0, 1, 2]);
  file.resize(2);
  file.close();
  expect(() => file.close()).not.toThrow();
  const names = [];
  for await (const [name] of inside.entries()) names.push(name);
  expect(names).toEqual(['a']);
  await removeStored(inside, 'a', 'a');
  expect(await readWhole(inside, 'a', 'a')).toBeUndefined();
  await expect(inside.getDirectoryHandle('b')).rejects.toMatchObject({ name: 'NotFoundError' });
});

test('a lock is held by one of all commands, and one that is gone holds none', async () => {
  const [one, other] = [diskLocks(folder), diskLocks(folder)];
  await one.request('x', {}, async () => {
    expect(await other.request('x', { ifAvailable: true }, (lock) => lock)).toBeNull();
    expect(await other.request('y', { ifAvailable: true }, (lock) => lock)).toEqual({ name: 'y' });
  });
  expect(await other.request('x', { ifAvailable: true }, (lock) => lock)).not.toBeNull();
  // the files of processes that are gone: killed, killed with a number that another has now, killed before it wrote its note
  for (const note of ['2147483646 long ago', `${process.pid} at another time`, '']) {
    await one.request('x', {}, () => {
      for (const name of readdirSync(folder)) {
        writeFileSync(join(folder, name), note);
        utimesSync(join(folder, name), 1, 1);
      }
      return other.request('x', { ifAvailable: true }, (lock) => expect(lock, note).not.toBeNull());
    });
  }
});
