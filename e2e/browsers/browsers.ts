/**
 * `npm run test:browsers`: the same journeys in Chromium, Firefox and WebKitGTK, on the built studio under its policy. All that
 * merge must end in the same sha256. `-- --only firefox` walks in one; the table it prints is that of docs/reliability.md.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startAppServer } from '../../src/cli/app-server';
import { ensureBuilt } from '../../src/cli/build';
import { HUB_ORIGINS } from '../../src/cli/content-security-policy';
import { missingPackages, openChromium, openFirefox, openWebKit } from './launch';
import { type Person, personAt, type Tab } from './tab';

const BROWSERS = { chromium: openChromium, firefox: openFirefox, webkit: openWebKit };
const { values } = parseArgs({ options: { only: { type: 'string' } } });

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = await ensureBuilt(root, () => console.log('Building the studio …'));
let server = await startAppServer(dist, HUB_ORIGINS);
const { url } = server;

interface Walk {
  tab: Tab;
  person: Person;
  /** What the browser cannot do is known from the page, and said there. */
  hasStorage: boolean;
  hasWebGpu: boolean;
  /** sha256 of the first merge. */
  sha256?: string;
}

/** A result for the table; throws where the journey fails. */
type Journey = (walk: Walk) => Promise<string>;

/** Without storage the studio says at the start what it cannot do; with it, that it is ready. */
const ready = ({ hasStorage }: Walk) => (hasStorage ? '^Ready:' : 'offers no storage to keep the result in');

async function chooseEngine({ person }: Walk, engine: 'WebGPU' | 'CPU'): Promise<void> {
  await person.presses('button', '^(CPU|WebGPU) ·');
  await person.presses('radio', `^${engine}`);
  await person.finds('button', `^${engine} ·`);
}

/** Merges the sample. @returns the sha256 that the page shows */
async function merge(walk: Walk, engine: 'WebGPU' | 'CPU'): Promise<string> {
  const { tab, person } = walk;
  await tab.goto(url);
  await person.sees(ready(walk));
  await chooseEngine(walk, engine);
  await person.presses('button', '^Merge$');
  await person.sees('^Merged in');
  await person.presses('tab', 'Output');
  const title = await person.until<string>(
    'the sha256',
    `document.querySelector('[title^="sha256 "]')?.getAttribute('title')`,
  );
  return title.slice('sha256 '.length);
}

const JOURNEYS: Record<string, Journey> = {
  async 'opens and predicts'(walk) {
    await walk.tab.goto(url);
    await walk.person.sees(ready(walk));
    return 'yes';
  },
  async 'merges on the CPU'(walk) {
    if (!walk.hasStorage) {
      await walk.person.sees(ready(walk));
      return 'says: no storage';
    }
    walk.sha256 = await merge(walk, 'CPU');
    return walk.sha256.slice(0, 12);
  },
  async 'saves as a download'({ tab, person, sha256, hasStorage }) {
    if (!hasStorage) return '–';
    await person.presses('button', '^Download model\\.safetensors');
    const file = join(tab.downloads!, 'model.safetensors');
    for (let tried = 0; !existsSync(file) || existsSync(`${file}.part`); tried++) {
      if (tried === 300) throw new Error(`${tab.browser}: no download came`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const saved = createHash('sha256').update(readFileSync(file)).digest('hex');
    if (saved !== sha256) throw new Error(`${tab.browser}: saved ${saved}, shown ${sha256}`);
    return 'same bytes';
  },
  async 'merges on WebGPU'(walk) {
    if (!walk.hasStorage) return '–';
    if (!walk.hasWebGpu) return 'no WebGPU';
    const sha256 = await merge(walk, 'WebGPU');
    if (sha256 !== walk.sha256) throw new Error(`WebGPU gave ${sha256}, the CPU ${walk.sha256}`);
    return sha256.slice(0, 12);
  },
  async 'measures perplexity'(walk) {
    const { tab, person } = walk;
    await tab.goto(url);
    await person.sees(ready(walk));
    await person.presses('tab', '^Evaluate');
    for (const name of ['common', 'harbour', 'workshop']) await person.presses('button', `^${name}$`);
    await person.presses('button', '^Measure$');
    const shown = await person.until<string>(
      'five perplexities',
      `(() => {
        const all = [...document.querySelectorAll('table .perplexity-value')].map((e) => /^\\d+\\.\\d{3}/.exec(e.textContent)?.[0]);
        return all.length === 5 && all.every(Boolean) && all.join(' ');
      })()`,
    );
    return shown;
  },
  async 'opens offline'(walk) {
    const { tab, person } = walk;
    if (!walk.hasStorage) return '–';
    await tab.goto(url);
    await person.until('the service worker', 'navigator.serviceWorker.ready.then(() => true)');
    await server.close();
    try {
      await tab.goto(url);
      await person.sees(ready(walk));
    } finally {
      server = await startAppServer(dist, HUB_ORIGINS, Number(new URL(url).port));
    }
    return 'yes';
  },
};

function install(): void {
  const missing = missingPackages();
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

install();
const table = new Map(Object.keys(JOURNEYS).map((journey) => [journey, [] as string[]]));
const names: string[] = [];
let failed = 0;
const merged = new Set<string>();
for (const [name, open] of Object.entries(BROWSERS)) {
  if (values.only !== undefined && values.only !== name) continue;
  const tab = await open();
  names.push(tab.browser);
  try {
    await tab.goto(url);
    const walk: Walk = {
      tab,
      person: personAt(tab),
      hasStorage: await tab.run(
        `(navigator.storage?.getDirectory?.() ?? Promise.reject()).then(() => true, () => false)`,
      ),
      hasWebGpu: await tab.run(
        `(async () => Boolean(await navigator.gpu?.requestAdapter({ forceFallbackAdapter: true }) ?? await navigator.gpu?.requestAdapter()))()`,
      ),
    };
    for (const [title, journey] of Object.entries(JOURNEYS)) {
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
    if (walk.sha256 !== undefined) merged.add(walk.sha256);
  } finally {
    await tab.close();
  }
}
await server.close();
console.log(`\n| journey | ${names.join(' | ')} |\n|---|${'---|'.repeat(names.length)}`);
for (const [title, results] of table) console.log(`| ${title} | ${results.join(' | ')} |`);
if (merged.size > 1) {
  console.error(`The browsers merged to different bytes: ${[...merged].join(', ')}`);
  failed++;
}
process.exit(failed === 0 ? 0 : 1);
