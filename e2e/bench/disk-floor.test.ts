import { existsSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { diskFloor, PIECE_BYTES } from './disk-floor';

const folder = mkdtempSync(join(tmpdir(), 'amalgam-floor-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A file without data of its own. */
function file(name: string, bytes: number): string {
  const path = join(folder, name);
  writeFileSync(path, '');
  truncateSync(path, bytes);
  return path;
}

describe('the floor on the disk', () => {
  it.each([
    ['files of several lengths', [PIECE_BYTES * 2 + 5, 3, PIECE_BYTES], PIECE_BYTES + 17],
    ['more to write than to read', [10], PIECE_BYTES * 2],
    ['nothing to write', [PIECE_BYTES], 0],
    ['nothing to read', [], 100],
  ])('reads and writes each byte once: %s', (_, lengths, bytes) => {
    const files = lengths.map((length, i) => file(`in-${i}`, length));
    const scratch = join(folder, 'out');
    const { read, written, seconds } = diskFloor(files, bytes, scratch);
    expect({ read, written }).toEqual({ read: lengths.reduce((a, b) => a + b, 0), written: bytes });
    expect(seconds).toBeGreaterThan(0);
    expect(existsSync(scratch)).toBe(false);
  });
});
