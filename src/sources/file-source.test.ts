import { openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { bufferSource } from './byte-source';
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

test('reads in order take few slices, and give the bytes of the file wherever they are', async () => {
  const large = Uint8Array.from({ length: 20 * 2 ** 20 + 7 }, (_, i) => (i * 31 + (i >> 9)) & 0xff);
  const file = new Blob([large]);
  const slices = vi.spyOn(file, 'slice');
  const source = fileSource(file, 'large');
  const piece = 2 ** 20;
  for (let at = 0; at < large.length; at += piece) {
    const end = Math.min(at + piece, large.length);
    expect(Buffer.compare(await source.read(at, end), large.subarray(at, end))).toBe(0);
  }
  expect(slices).toHaveBeenCalledTimes(1);
  await fc.assert(
    fc.asyncProperty(fc.nat(large.length - 9), fc.nat(3 * piece), async (begin, length) => {
      const end = Math.min(begin + length, large.length);
      const both = await Promise.all([
        source.read(begin, end, undefined, new Uint8Array(end - begin)),
        source.read(end, Math.min(end + 9, large.length)),
      ]);
      const expected = large.subarray(begin, Math.min(end + 9, large.length));
      expect(Buffer.compare(Buffer.concat(both), expected)).toBe(0);
    }),
  );
});

test('a long file is opened anew on the way: Chromium sees only then that it was changed', async () => {
  const file = new Blob([new Uint8Array(70 * 2 ** 20)]);
  const slices = vi.spyOn(file, 'slice');
  const source = fileSource(file, 'long');
  const piece = 5 * 2 ** 20;
  for (let at = 0; at < file.size; at += piece) await source.read(at, at + piece);
  expect(slices.mock.calls.map(([begin]) => begin)).toEqual([0, 60 * 2 ** 20]);
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
