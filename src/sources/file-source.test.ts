import { openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bufferSource } from './buffer-source';
import { fileSource } from './file-source';

const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i & 0xff);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'amalgam-file-'));
});
afterAll(() => rm(folder, { recursive: true }));

test.each([
  ['buffer', bufferSource(bytes, 'the file')],
  ['file', fileSource(new Blob([bytes]), 'the file')],
])('a %s gives exactly the range, as an array of its own', async (_, source) => {
  expect(source.byteLength).toBe(1000);
  const part = await source.read(10, 20);
  expect(part).toEqual(bytes.slice(10, 20));
  part.fill(0);
  expect(await source.read(10, 20)).toEqual(bytes.slice(10, 20));
  expect(await source.read(1000, 1000)).toHaveLength(0);
  await expect(source.read(990, 1001)).rejects.toMatchObject({
    code: 'Internal',
    message: expect.stringContaining('the file'),
  });
  await expect(source.read(0, 1, AbortSignal.abort())).rejects.toMatchObject({ code: 'Canceled' });
});

test('a file that was changed after it was opened is FileChanged', async () => {
  const path = join(folder, 'weights.bin');
  await writeFile(path, bytes);
  const source = fileSource(await openAsBlob(path), 'm/weights.bin');
  expect(await source.read(0, 4)).toEqual(bytes.slice(0, 4));
  await writeFile(path, bytes.slice(0, 500));
  await expect(source.read(0, 4)).rejects.toMatchObject({
    code: 'FileChanged',
    message: expect.stringContaining('m/weights.bin'),
  });
});
