import { appendFileSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { diskFolder } from './folder-listing';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'amalgam-disk-folder-'));
  writeFileSync(join(folder, 'a.safetensors'), 'twelve bytes');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const opened = () =>
  diskFolder('org/model', [
    { path: 'a.safetensors', size: 12, location: join(folder, 'a.safetensors') },
  ]).files[0]!.open();

test('reads any range of a file', async () => {
  expect(new TextDecoder().decode(await opened().read(7, 12))).toBe('bytes');
});

test.each<[string, (file: string) => void]>([
  ['is overwritten in place', (file) => writeFileSync(file, 'TWELVE BYTES')],
  ['grows', (file) => appendFileSync(file, '!')],
  [
    'is made to look as old as it was',
    (file) => {
      const { atime, mtime } = statSync(file);
      writeFileSync(file, 'TWELVE BYTES');
      utimesSync(file, atime, mtime);
    },
  ],
])('a file that %s after its first read is an error that names it', async (_, change) => {
  const source = opened();
  await source.read(0, 4);
  // times of a file are as fine as the clock of its file system
  await new Promise((resolve) => setTimeout(resolve, 20));
  change(join(folder, 'a.safetensors'));
  await expect(source.read(4, 8)).rejects.toMatchObject({
    code: 'RunChanged',
    message: /org\/model\/a\.safetensors/,
  });
});

test('a file that is shorter than it was listed is an error before a byte is used', async () => {
  const listed = diskFolder('m', [
    { path: 'a.safetensors', size: 13, location: join(folder, 'a.safetensors') },
  ]);
  await expect(listed.files[0]!.open().read(0, 4)).rejects.toMatchObject({ code: 'RunChanged' });
});
