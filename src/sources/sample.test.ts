import { openAsBlob, readdirSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SAMPLES } from '../../e2e/disk-folder';
import { findFile } from './model-folder';
import { SAMPLE_FILES, sampleFolders } from './sample';

test('the table lists exactly the files in public/samples, with their sizes', () => {
  for (const [folder, files] of SAMPLE_FILES) {
    const directory = join(SAMPLES, folder.slice('samples/'.length));
    const found = readdirSync(directory).map((name) => [name, statSync(join(directory, name)).size]);
    expect([...files].sort()).toEqual(found.sort());
  }
});

/** Serves public/samples under https://app.example/base/samples/ and counts requests. */
function serving() {
  const asked: string[] = [];
  const fetch: typeof globalThis.fetch = async (input) => {
    asked.push(String(input));
    const path = String(input).replace('https://app.example/base/samples/', '');
    return new Response(await openAsBlob(join(SAMPLES, path)));
  };
  return { asked, fetch };
}

test('files are fetched whole once, from below the base path, and read by ranges', async () => {
  const { asked, fetch } = serving();
  const folders = sampleFolders('https://app.example/base/samples/', { fetch });
  expect(folders.map((f) => f.path)).toEqual([
    'samples/base',
    'samples/kitchen',
    'samples/harbour',
    'samples/workshop',
  ]);
  const base = folders[0];
  const file = base && findFile(base, 'model.safetensors');
  if (!file) throw new Error('the base has weights');
  expect(asked).toEqual([]);

  const expected = await readFile(join(SAMPLES, 'base/model.safetensors'));
  const [start, end] = await Promise.all([file.open().read(0, 8), file.open().read(1000, file.byteLength)]);
  expect(Buffer.from(start).equals(expected.subarray(0, 8))).toBe(true);
  expect(Buffer.from(end).equals(expected.subarray(1000))).toBe(true);
  expect(asked).toEqual(['https://app.example/base/samples/base/model.safetensors']);
});

test('a file of another length is refused, and asked for again at the next read', async () => {
  let asked = 0;
  const fetch: typeof globalThis.fetch = async () => {
    asked++;
    return new Response('<!doctype html>');
  };
  const [base] = sampleFolders('https://app.example/samples/', { fetch });
  const source = base?.files[0]?.open();
  for (const times of [1, 2]) {
    await expect(source?.read(0, 1)).rejects.toMatchObject({
      code: 'TransferInvalid',
      message: expect.stringContaining('samples/base/config.json'),
    });
    expect(asked).toBe(times);
  }
});
