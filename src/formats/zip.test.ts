import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { zipOf } from './zip';

/** Python's zipfile checks every CRC and reads the names. */
function readByPython(archive: Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'amalgam-zip-'));
  try {
    writeFileSync(join(folder, 'a.zip'), archive);
    const script =
      'import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nprint(z.testzip())\nfor i in z.infolist(): print(i.filename, i.file_size, i.compress_type)';
    return execFileSync('python3', ['-c', script, join(folder, 'a.zip')], { encoding: 'utf8' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('another reader finds every file as it was, by its name', async () => {
  const weights = crypto.getRandomValues(new Uint8Array(50_000));
  const told: number[] = [];
  const zip = await zipOf(
    [
      { name: 'model.safetensors', file: new Blob([weights]) },
      { name: 'größe/config.json', file: new Blob(['{}']) },
      { name: 'empty', file: new Blob([]) },
    ],
    (bytes) => told.push(bytes),
  );
  const bytes = new Uint8Array(await zip.arrayBuffer());
  expect(readByPython(bytes).trim().split('\n')).toEqual([
    'None',
    'model.safetensors 50000 0',
    'größe/config.json 2 0',
    'empty 0 0',
  ]);
  expect(told.at(-1)).toBe(50_002);
  // stored: the file itself is in it
  expect(Buffer.from(bytes).includes(Buffer.from(weights))).toBe(true);
});
