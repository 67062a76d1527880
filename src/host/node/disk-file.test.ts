import { createHash, randomBytes } from 'node:crypto';
import { closeSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pieceDigestOf } from '../../../e2e/tree-hash';
import { scratchFolder } from '../../scratch-folder.test.support';
import { digest as inBrowser } from '../../sources/digest';
import { beginPiece, pieceDigest } from '../../sources/piece-digest';
import { digest } from './sha256';
import { DiskFile } from './storage';

const folder = scratchFolder();

test('a file of 5 GiB has its size, and its bytes wherever they are', async () => {
  const path = join(folder, 'large');
  writeFileSync(path, 'begin');
  truncateSync(path, 5 * 2 ** 30);
  const open = openSync(path, 'r+');
  writeSync(open, 'end', 5 * 2 ** 30 - 3);
  closeSync(open);
  const file = new DiskFile(path, 'large');
  expect([file.name, file.size]).toEqual(['large', 5 * 2 ** 30]);
  expect(await file.slice(0, 5).text()).toBe('begin');
  const last = file.slice(5 * 2 ** 30 - 5, 6 * 2 ** 30);
  expect([last.size, await last.text(), await last.slice(2, 4).text()]).toEqual([5, '\0\0end', 'en']);
  expect((await file.slice(7, 7).arrayBuffer()).byteLength).toBe(0);
});

test.each([digest, inBrowser])('%s is the sha256 of what was there when it was called', async (digestOf) => {
  for (const length of [2 ** 21, 1, 0]) {
    const memory = Uint8Array.from(randomBytes(length + 8));
    const bytes = memory.subarray(8);
    const wanted = createHash('sha256').update(bytes).digest('hex');
    const made = digestOf(bytes);
    bytes.fill(0);
    expect(Buffer.from(await made).toString('hex')).toBe(wanted);
  }
});

test('the digest of a piece is that of its parts, in whatever lengths its bytes come, and of every beginning', async () => {
  const bytes = Uint8Array.from(randomBytes(600_000));
  let piece = beginPiece();
  let at = 0;
  for (const to of [0, 1, 1, 70_000, 262_144, 300_000, 524_288, 599_999, 600_000]) {
    const part = bytes.slice(at, to);
    piece.update(part);
    part.fill(0);
    at = to;
    const wanted = pieceDigestOf(bytes.subarray(0, to));
    expect(Buffer.compare(await piece.copy().end(), wanted)).toBe(0);
    expect(Buffer.compare(await pieceDigest(bytes.slice(0, to)), wanted)).toBe(0);
    piece = piece.copy();
  }
});
