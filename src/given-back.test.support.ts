/**
 * Set-up of the tests in Node, whose files share modules and globals: what a file stubs or spies on ends with it, and the folder
 * for temporary files that it has to itself is empty then. Arrays of the
 * same bytes or numbers are equal without a look at every element, which takes seconds a megabyte.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, expect, vi } from 'vitest';

expect.addEqualityTesters([
  (a, b) =>
    ArrayBuffer.isView(a) && ArrayBuffer.isView(b) && a.constructor === b.constructor && haveSameBytes(a, b)
      ? true
      : undefined,
  (a, b) => (Array.isArray(a) && Array.isArray(b) && haveSameNumbers(a, b) ? true : undefined),
]);

function haveSameBytes(a: ArrayBufferView, b: ArrayBufferView): boolean {
  const [one, other] = [a, b].map((view) => Buffer.from(view.buffer, view.byteOffset, view.byteLength));
  return one!.equals(other!);
}

function haveSameNumbers(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (const [i, number] of a.entries())
    if (typeof number !== 'number' || !Object.is(number, b[i])) return false;
  return true;
}

const { TMPDIR } = process.env;
const own = mkdtempSync(join(tmpdir(), 'amalgam-tests-'));
process.env.TMPDIR = own;

// of hooks that end, the first one is the last to run
afterAll(() => {
  const left = readdirSync(own);
  rmSync(own, { recursive: true, force: true });
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  vi.useRealTimers();
  expect(left, 'temporary files of this test file').toEqual([]);
});
