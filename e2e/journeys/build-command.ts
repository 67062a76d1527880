import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const ROOT = join(import.meta.dirname, '../..');

/** Builds the headless command before two journeys want it at once, and empties the cache that it has in journeys. */
export default async function buildCommand(): Promise<void> {
  rmSync(process.env.XDG_CACHE_HOME!, { recursive: true, force: true });
  execFileSync(process.execPath, ['src/cli/amalgam.mjs', '--help'], { cwd: ROOT, stdio: 'ignore' });
}
