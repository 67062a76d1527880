import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openFolderDestination } from './folder-destination';

// A folder of the private file system has the interface of a picked one.
let picked: FileSystemDirectoryHandle;

beforeEach(async () => {
  const root = await navigator.storage.getDirectory();
  picked = await root.getDirectoryHandle(`picked-${crypto.randomUUID()}`, { create: true });
});

afterEach(async () => {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry(picked.name, { recursive: true });
});

const bytes = (...values: number[]) => Uint8Array.from(values);

async function names(folder: FileSystemDirectoryHandle): Promise<string[]> {
  const found: string[] = [];
  for await (const name of folder.keys()) found.push(name);
  return found.sort();
}

describe('openFolderDestination', () => {
  test('writes files and sub-folders into a new folder', async () => {
    const destination = await openFolderDestination(picked, 'merged');
    const shard = await destination.create('model.safetensors');
    const reused = bytes(1, 2, 3);
    await shard.write(reused, 0);
    reused.fill(9);
    await shard.write(bytes(4), 3);
    await shard.close([], 4);
    const nested = await destination.create('original/params.json');
    await nested.close([], 0);
    await destination.commit();
    await destination.discard();

    const folder = await picked.getDirectoryHandle('merged');
    expect(await names(folder)).toEqual(['model.safetensors', 'original']);
    const file = await (await folder.getFileHandle('model.safetensors')).getFile();
    expect(new Uint8Array(await file.arrayBuffer())).toEqual(bytes(1, 2, 3, 4));
  });

  test('a file under its final name is empty until it is closed', async () => {
    const destination = await openFolderDestination(picked, 'merged');
    const shard = await destination.create('model.safetensors');
    await shard.write(bytes(1, 2, 3), 0);
    const folder = await picked.getDirectoryHandle('merged');
    const unfinished = await (await folder.getFileHandle('model.safetensors')).getFile();
    expect(unfinished.size).toBe(0);
    await expect(destination.commit()).rejects.toMatchObject({ code: 'DestinationFailed' });
    await destination.discard();
  });

  test('refuses a folder with something in it, and a file of that name', async () => {
    const existing = await picked.getDirectoryHandle('merged', { create: true });
    await existing.getFileHandle('thesis.txt', { create: true });
    await picked.getFileHandle('plain', { create: true });
    const refused = { code: 'DestinationNotEmpty', message: expect.stringContaining('merged') };
    await expect(openFolderDestination(picked, 'merged')).rejects.toMatchObject(refused);
    await expect(openFolderDestination(picked, 'plain')).rejects.toMatchObject({
      code: 'DestinationNotEmpty',
    });
    expect(await names(existing)).toEqual(['thesis.txt']);
  });

  test('discard removes what was begun and finished, and the folder it made', async () => {
    const destination = await openFolderDestination(picked, 'merged');
    const nested = await destination.create('a/b/c.json');
    await nested.write(bytes(1), 0);
    await nested.close([], 1);
    const begun = await destination.create('model.safetensors');
    await begun.write(bytes(1), 0);
    await destination.discard();
    await destination.discard();
    expect(await names(picked)).toEqual([]);
  });

  test('discard keeps a folder that was there, and files that are not ours', async () => {
    await picked.getDirectoryHandle('empty', { create: true });
    const first = await openFolderDestination(picked, 'empty');
    await (await first.create('x')).close([], 0);
    await first.discard();
    expect(await names(picked)).toEqual(['empty']);

    const second = await openFolderDestination(picked, 'merged');
    await (await second.create('x')).close([], 0);
    const folder = await picked.getDirectoryHandle('merged');
    await folder.getFileHandle('note.txt', { create: true });
    await second.discard();
    expect(await names(folder)).toEqual(['note.txt']);
  });

  test('R46: a folder deleted underneath is an error in words', async () => {
    const destination = await openFolderDestination(picked, 'merged');
    await picked.removeEntry('merged', { recursive: true });
    await expect(destination.create('x')).rejects.toMatchObject({
      code: 'DestinationFailed',
      message: expect.stringContaining('deleted'),
    });
    await destination.discard();
  });

  test('R46: a close that the browser’s check refuses: finished files stay, and the next run goes on from them', async () => {
    const first = await openFolderDestination(picked, 'merged');
    const shard = await first.create('model-00001-of-00002.safetensors');
    await shard.write(bytes(1, 2, 3), 0);
    await shard.close([], 3);
    const refused = await first.create('model-00002-of-00002.safetensors');
    await refused.write(bytes(4), 0);
    vi.spyOn(FileSystemWritableFileStream.prototype, 'close').mockRejectedValue(
      new DOMException('blocked', 'AbortError'),
    );
    await expect(refused.close([], 1)).rejects.toMatchObject({
      code: 'DestinationFailed',
      message: expect.stringContaining('download check'),
      hint: expect.stringContaining('another folder'),
    });
    vi.restoreAllMocks();
    await first.remains!.keep();
    const folder = await picked.getDirectoryHandle('merged');
    const kept = await (await folder.getFileHandle('model-00001-of-00002.safetensors')).getFile();
    expect(new Uint8Array(await kept.arrayBuffer())).toEqual(bytes(1, 2, 3));
  });

  test('R46: only the folder of the interrupted merge is resumed, never another of that name', async () => {
    await picked.getDirectoryHandle('merged', { create: true });
    await expect(openFolderDestination(picked, 'merged', true)).rejects.toMatchObject({
      code: 'DestinationFailed',
      hint: expect.stringContaining('begun in'),
    });
    await expect(openFolderDestination(picked, 'gone', true)).rejects.toMatchObject({
      code: 'DestinationFailed',
    });
  });

  test('a closed file that lost bytes stops the commit', async () => {
    const destination = await openFolderDestination(picked, 'merged');
    const sink = await destination.create('model.safetensors');
    await sink.write(bytes(1, 2, 3), 0);
    await sink.close([], 3);
    const folder = await picked.getDirectoryHandle('merged');
    const stream = await (await folder.getFileHandle('model.safetensors')).createWritable();
    await stream.close();
    await expect(destination.commit()).rejects.toMatchObject({
      message: 'model.safetensors should have 3 bytes but has 0.',
    });
  });

  test.each(['../up', '/root', 'a//b', 'C:\\x', ''])('refuses the path %j', async (path) => {
    const destination = await openFolderDestination(picked, 'merged');
    await expect(destination.create(path)).rejects.toMatchObject({ code: 'UnsafePath' });
    await expect(openFolderDestination(picked, path)).rejects.toMatchObject({ code: 'UnsafePath' });
    await destination.discard();
  });
});
