/**
 * `npm run test:browsers`: the same journeys in Chromium, Firefox and WebKitGTK, on the built studio under its policy. All that
 * merge must end in the same sha256. `-- --only firefox` walks in one, `--journey resumes` those of that name; the table it
 * prints is that of docs/reliability.md.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createServer } from 'vite';
import { ensureBuilt, serveStudio } from '../../src/cli/build';
import { HUB_ORIGINS } from '../../src/cli/content-security-policy';
import { startBuiltStudio } from '../built-studio';
import { sampleModels, startFakeHub } from '../fake-hub';
import { JOURNEYS, type Walk } from './journeys';
import { missingPackages, openChromium, openFirefox, openWebKit } from './launch';
import { personAt } from './tab';

const BROWSERS = { chromium: openChromium, firefox: openFirefox, webkit: openWebKit };
const { values } = parseArgs({ options: { only: { type: 'string' }, journey: { type: 'string' } } });
const chosen = Object.entries(BROWSERS).filter(([name]) => [undefined, name].includes(values.only));
install(chosen.map(([name]) => name));

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = await ensureBuilt(root, console.log);
const hub = await startFakeHub({ models: sampleModels(join(root, 'public/samples')) });
const server = await startBuiltStudio([hub.url, hub.cdnUrl]);
const { url } = server;
const pages = await createServer({
  root,
  configFile: false,
  logLevel: 'error',
  cacheDir: 'node_modules/.cache/held',
  optimizeDeps: { entries: ['e2e/browsers/held.html'] },
  server: { port: 0, host: '127.0.0.1', open: false, hmr: false, watch: null },
});
await pages.listen();
const heldUrl = `${pages.resolvedUrls!.local[0]}e2e/browsers/held.html`;

function install(browsers: readonly string[]): void {
  const missing = missingPackages(browsers);
  if (missing.length === 0) return;
  const command = ['install', '-y', '-qq', '--no-install-recommends', ...missing];
  const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');
  console.log(`${isRoot ? 'Installing' : 'Missing'}: ${missing.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  if (isRoot && spawnSync('apt-get', command, { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0)
    return;
  console.error(`Install them: sudo apt-get ${command.join(' ')}`);
  process.exit(1);
}

const journeys = Object.entries(JOURNEYS).filter(
  ([title]) =>
    values.journey === undefined || new RegExp(values.journey).test(title) || title === 'merges on the CPU',
);
const table = new Map(journeys.map(([title]) => [title, [] as string[]]));
const names: string[] = [];
let failed = 0;
const merged = new Map<string, Set<string>>();
for (const [, open] of chosen) {
  const tab = await open();
  names.push(tab.browser);
  // under the policy that stands in the page itself: the service worker takes no page that differs from the build
  const started = await serveStudio(dist, HUB_ORIGINS);
  const walk: Walk = {
    tab,
    person: personAt(tab),
    url,
    heldUrl,
    hub,
    started: { url: started.url, leave: () => started.close() },
    hasStorage: false,
    hasWebGpu: false,
    merged: new Map(),
  };
  try {
    await tab.goto(url);
    walk.hasStorage = await tab.run(
      `(navigator.storage?.getDirectory?.() ?? Promise.reject()).then(() => true, () => false)`,
    );
    walk.hasWebGpu = await tab.run(
      `(async () => Boolean(await navigator.gpu?.requestAdapter({ forceFallbackAdapter: true }) ?? await navigator.gpu?.requestAdapter()))()`,
    );
    for (const [title, journey] of journeys) {
      const begun = performance.now();
      const result = await journey(walk).catch((thrown: Error) => {
        failed++;
        console.error(thrown.message);
        return '**failed**';
      });
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      console.log(`${tab.browser} · ${title}: ${result} (${seconds} s)`);
      table.get(title)!.push(result);
    }
    for (const [what, sha256] of walk.merged)
      merged.set(what, (merged.get(what) ?? new Set<string>()).add(sha256));
  } finally {
    await walk.tab.close();
    await started.close();
  }
}
await server.close();
await pages.close();
await hub.close();
console.log(`\n| journey | ${names.join(' | ')} |\n|---|${'---|'.repeat(names.length)}`);
for (const [title, results] of table) console.log(`| ${title} | ${results.join(' | ')} |`);
for (const [what, hashes] of merged) {
  if (hashes.size === 1) continue;
  console.error(`The browsers merged ${what} to different bytes: ${[...hashes].join(', ')}`);
  failed++;
}
process.exit(failed === 0 ? 0 : 1);
