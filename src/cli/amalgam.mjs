/** Starts the headless command: builds it where its sources are newer, then runs it in this process. */
import { readdirSync, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BUILT = join(ROOT, 'dist-command');

/** Milliseconds of the latest change at or below a path; tests are no part of the command. */
function newestChange(path) {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return 0;
  if (!stats.isDirectory()) return stats.mtimeMs;
  let newest = stats.mtimeMs;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (/\.test\./.test(entry.name)) continue;
    const inside = join(path, entry.name);
    newest = Math.max(newest, entry.isDirectory() ? newestChange(inside) : statSync(inside).mtimeMs);
  }
  return newest;
}

const made = statSync(join(BUILT, 'bin', 'amalgam.mjs'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
const sources = ['src', 'shaders', 'assembly', 'package-lock.json'].map((path) => join(ROOT, path));
if (sources.some((path) => newestChange(path) > made)) {
  const { buildCommand } = await import(new URL('./build-command.mjs', import.meta.url).href);
  const fresh = join(ROOT, `dist-command-${process.pid}`);
  const old = `${fresh}-old`;
  try {
    await buildCommand(ROOT, join(fresh, 'bin'), (line) => process.stderr.write(`${line}\n`));
    await rename(BUILT, old).catch((thrown) => {
      if (thrown.code !== 'ENOENT') throw thrown;
    });
    await rename(fresh, BUILT);
  } finally {
    for (const folder of [fresh, old]) await rm(folder, { recursive: true, force: true });
  }
}
await import(pathToFileURL(join(BUILT, 'bin', 'amalgam.mjs')).href);
