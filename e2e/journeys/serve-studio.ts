import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { serviceWorker } from '../../offline/vite-plugin';
import { ensureBuilt, serveStudio } from '../../src/cli/build';
import { contentSecurityPolicy } from '../../src/cli/content-security-policy';
import { CLIENT_ID, HUB_ORIGINS, STUDIO_DIST, STUDIO_PORT } from './addresses';

const ROOT = join(import.meta.dirname, '../..');

/**
 * Builds the headless command and the studio before two journeys want them at once, where they are older than their sources,
 * empties the command's cache, and serves the studio as `npm start` has it: only the hubs that its page may talk to, and
 * whom it is to them, are the journeys'.
 * @returns what ends it
 */
export default async function serveJourneys(): Promise<() => Promise<void>> {
  rmSync(process.env.XDG_CACHE_HOME!, { recursive: true, force: true });
  execFileSync(process.execPath, ['src/cli/amalgam.mjs', '--help'], { cwd: ROOT, stdio: 'ignore' });
  const dist = join(ROOT, STUDIO_DIST);
  rmSync(dist, { recursive: true, force: true });
  cpSync(await ensureBuilt(ROOT, console.log), dist, { recursive: true });
  const page = join(dist, 'index.html');
  const html = readFileSync(page, 'utf8').replace(
    /(<meta http-equiv="Content-Security-Policy" content=")[^"]*(">)/,
    `$1${contentSecurityPolicy(HUB_ORIGINS)}$2<meta name="hub-client-id" content="${CLIENT_ID}">`,
  );
  writeFileSync(page, html);
  // it knows every file by its content
  writeFileSync(join(dist, 'sw.js'), serviceWorker(dist));
  return (await serveStudio(dist, HUB_ORIGINS, STUDIO_PORT)).close;
}
