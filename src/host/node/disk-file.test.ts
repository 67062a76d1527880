import { createHash, randomBytes } from 'node:crypto';
import { closeSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scratchFolder } from '../../scratch-folder.test.support';
import { beginPiece as inBrowser } from '../../sources/piece-digest';
import { beginPiece, pieceDigest } from './sha256';
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

test('the digest of a piece is the sha256 of what a piece held when it was handed over', async () => {
  for (const length of [2 ** 21, 1, 0]) {
    const memory = Uint8Array.from(randomBytes(length + 8));
    const piece = memory.subarray(8);
    const wanted = createHash('sha256').update(piece).digest('hex');
    const digest = pieceDigest(piece);
    piece.fill(0);
    expect(Buffer.from(await digest).toString('hex')).toBe(wanted);
  }
});

test.each([beginPiece, inBrowser])(
  'the digest is that of bytes that came in parts, and of every beginning: %s',
  async (begin) => {
    const bytes = Uint8Array.from(randomBytes(300_000));
    const wanted = (to: number) => createHash('sha256').update(bytes.subarray(0, to)).digest('hex');
    let piece = begin(bytes.length);
    let at = 0;
    for (const to of [0, 1, 1, 70_000, 299_999, 300_000]) {
      const part = bytes.slice(at, to);
      piece.update(part);
      part.fill(0);
      at = to;
      expect(Buffer.from(await piece.copy().end()).toString('hex')).toBe(wanted(to));
      piece = piece.copy();
    }
    expect(Buffer.from(await piece.end()).toString('hex')).toBe(wanted(bytes.length));
  },
);
