/**
 * `npm start`: the built studio on this machine. The port stays the same, because a browser's storage belongs to an address.
 */
import { spawn } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ensureBuilt, serveStudio } from './build';
import { HUB_ORIGINS } from './content-security-policy';

const PORT = 5173;
const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

const { values } = parseArgs({
  options: { port: { type: 'string' }, 'no-open': { type: 'boolean', default: false } },
});
const port = values.port === undefined ? PORT : Number(values.port);

const dist = await ensureBuilt(PROJECT, console.log);
const { url } = await serveStudio(dist, HUB_ORIGINS, port).catch((thrown: Error) => {
  console.error(
    `Port ${port} cannot be used: ${thrown.message}. Is the studio already running? Otherwise: npm start -- --port 5174`,
  );
  process.exit(1);
});
console.log(`Amalgam: ${url}  (Ctrl+C ends it)`);
if (!values['no-open']) openBrowser(url);

/** Opens the user's browser where there is a desktop; the address is printed anyway. */
function openBrowser(address: string): void {
  const openers: Partial<Record<NodeJS.Platform, [string, string[]]>> = {
    darwin: ['open', [address]],
    win32: ['cmd', ['/c', 'start', '', address]],
    linux: ['xdg-open', [address]],
  };
  const opener = openers[process.platform];
  const hasDesktop = process.platform !== 'linux' || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (!opener || !hasDesktop) return;
  spawn(opener[0], opener[1], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref();
}
