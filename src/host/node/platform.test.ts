import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ownNote, startOf } from './locks';
import { temporaryFolder } from './platform';

const { TMPDIR } = process.env;
beforeEach(() => {
  process.env.TMPDIR = mkdtempSync(join(tmpdir(), 'amalgam-temporary-'));
});
afterEach(() => {
  rmSync(process.env.TMPDIR!, { recursive: true });
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
});

function folder(name: string, note?: string): string {
  const path = join(tmpdir(), name);
  mkdirSync(path);
  if (note !== undefined) writeFileSync(join(path, '.amalgam-owner'), note);
  return path;
}

test('R47: what a command left that was killed is removed by the next one; what is in use, or new, stays', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  await once(child, 'spawn');
  const note = `${child.pid} ${await startOf(child.pid!)}`;
  const [living, own] = [folder('amalgam-x-living', note), folder('amalgam-x-own', await ownNote())];
  const beingMade = folder('amalgam-x-made');
  const other = folder('amalgam-y-other', '2147483646 long ago');
  const reused = folder('amalgam-x-reused', `${child.pid} at another time`);
  const old = folder('amalgam-x-old');
  utimesSync(old, 1, 1);

  const made = await temporaryFolder('amalgam-x-');
  expect([living, own, beingMade, other, made, reused, old].map((path) => existsSync(path))).toEqual([
    true,
    true,
    true,
    true,
    true,
    false,
    false,
  ]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await temporaryFolder('amalgam-x-');
  expect([living, made].map((path) => existsSync(path))).toEqual([false, true]);
});
