import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { ensureBuilt } from '../../src/cli/build';

const ROOT = join(import.meta.dirname, '../..');

/**
 * Builds the headless command and what it serves for WebGPU, before two journeys want them at once, and empties the cache
 * that the command has in journeys.
 */
export default async function buildCommand(): Promise<void> {
  rmSync(process.env.XDG_CACHE_HOME!, { recursive: true, force: true });
  execFileSync(process.execPath, ['src/cli/amalgam.mjs', '--help'], { cwd: ROOT, stdio: 'ignore' });
  await ensureBuilt(ROOT, () => {});
}
