import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type FakeStorage, fakeStorage } from './opfs.test.fake';
import { OpfsFile, openOpfsFile, readWhole, removeStored, storageFolder, writeWhole } from './opfs-file';

let storage: FakeStorage;
beforeEach(() => {
  storage = fakeStorage();
  vi.stubGlobal('navigator', storage.navigator);
});

const bytes = (...values: number[]) => Uint8Array.from(values);
const open = async (mode: 'create' | 'read-only' = 'create') =>
  openOpfsFile(await storageFolder('top'), 'f', 'the file', mode);

/** A handle whose `write` and `getSize` answer as told. */
function lyingFile(answers: { count: number; size: number }): OpfsFile {
  const handle = {
    write: () => answers.count,
    getSize: () => answers.size,
    read: () => answers.count,
    truncate: () => {},
    flush: () => {},
    close: () => {},
  };
  return new OpfsFile(handle, 'the file');
}

describe('R35: counts', () => {
  test.each([
    [4294967288, 100, 'StorageFull'],
    [0, 100, 'StorageFull'],
    [2, 100, 'StorageFull'],
    [4, 100, 'StorageFull'],
    [3, 12, 'StorageFailed'],
    [3, 4294967288, 'none'],
    [3, 13, 'none'],
  ])('a write of 3 bytes at 10 that returns %i and leaves %i bytes: %s', (count, size, code) => {
    const write = () => lyingFile({ count, size }).writeAll(bytes(1, 2, 3), 10);
    if (code === 'none') write();
    else
      expect(write).toThrow(expect.objectContaining({ code, message: expect.stringContaining('the file') }));
  });

  test.each([0, 4, 99, 4294967288])('a resize to 100 bytes that leaves %i: StorageFull', (size) => {
    expect(() => lyingFile({ count: 0, size }).resize(100)).toThrow(
      expect.objectContaining({ code: 'StorageFull' }),
    );
  });

  test('a read that returns fewer bytes is StorageFailed', () => {
    expect(() => lyingFile({ count: 2, size: 9 }).read(0, 3)).toThrow(
      expect.objectContaining({ code: 'StorageFailed' }),
    );
  });
});

describe('files', () => {
  test('keep what was written, at its place', async () => {
    const file = await open();
    file.resize(6);
    file.writeAll(bytes(1, 2), 1);
    file.writeAll(bytes(3), 5);
    expect(file.read(0, 6)).toEqual(bytes(0, 1, 2, 0, 0, 3));
    file.close();
    expect(await readWhole(await storageFolder('top'), 'f', 'the file')).toEqual(bytes(0, 1, 2, 0, 0, 3));
  });

  test('are replaced whole, longer or shorter, and removed', async () => {
    const folder = await storageFolder('top');
    await writeWhole(folder, 'f', bytes(1, 2, 3), 'the file');
    await writeWhole(folder, 'f', bytes(4), 'the file');
    expect(await readWhole(folder, 'f', 'the file')).toEqual(bytes(4));
    await removeStored(folder, 'f', 'the file');
    await removeStored(folder, 'f', 'the file');
    expect(await readWhole(folder, 'f', 'the file')).toBeUndefined();
    await expect(open('read-only')).rejects.toMatchObject({ code: 'StorageFailed' });
  });

  test('have one writer or several readers; a lock that goes away is waited for', async () => {
    const writer = await open();
    setTimeout(() => writer.close(), 120);
    const reader = await open('read-only');
    const other = await open('read-only');
    reader.close();
    other.close();
    const stays = await open();
    await expect(open('read-only')).rejects.toMatchObject({ code: 'Busy' });
    stays.close();
  });
});
