import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A new folder of this machine's for a file of tests, gone when they have ended. */
export function scratchFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'amalgam-test-')));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
