/**
 * Work of the studio's main thread while a user works, in a production build and the installed Chromium:
 *
 *   npm run bench:interaction -- [--trace FILE.json] [--keep FOLDER] [--against FOLDER]
 *
 * - a step of the density slider over a view of 32 layers, 4 contributors and 2 runs with their difference, and what follows
 *   once it rests
 * - another metric, and a run that is hidden or shown
 * - typing into the filter of the table
 * - the longest tasks while the sample is merged, by the engine in its worker
 *
 * Everything is processor time of the main thread, from traces. `--trace` saves the one of the slider for DevTools.
 * `--keep` leaves the build in a folder; `--against` moves the slider of such a build too, chart by chart in turn with
 * this one's: on a machine that has other work, two builds can be compared and two runs cannot.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type CDPSession, chromium, type Page } from 'playwright';
import { build, preview } from 'vite';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';
import { type MainThread, type Part, type Parts, startTrace, sum } from './main-thread';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const BENCH_PAGE = 'e2e/bench/interaction.html';
const STEPS = 40;
/** A step is drawn before the next one comes; the slider does not rest in between. */
const BETWEEN_MS = 100;
/** After this the studio has caught up with a slider that rests. */
const REST_MS = 1200;
/** After the name of a row: of this build, of the other. */
const OTHER = ['', ', the other'];
const METRICS = ['mergedSparsity', 'trimmed', 'keptEnergy', 'lostInVote', 'signConflict', 'outputChange'];

/** Controls that change the view: name, selector, key. */
const TOGGLES = [
  ['another metric', '.layers-bar select', 'ArrowDown'],
  ['a run hidden or shown', '.run-chip:nth-child(2) .run-toggle', 'Enter'],
] as const;
const TOGGLE_STEPS = 8;
/** All work after a toggle is counted with it. */
const TOGGLE_MS = 700;

const { values: options } = parseArgs({
  options: { trace: { type: 'string' }, keep: { type: 'string' }, against: { type: 'string' } },
});
const scratch = mkdtempSync(join(tmpdir(), 'amalgam-interaction-'));
const ends: (() => Promise<unknown>)[] = [];
try {
  const outDir = resolve(options.keep ?? join(scratch, 'dist'));
  await build({
    root: PROJECT,
    logLevel: 'warn',
    build: {
      outDir,
      emptyOutDir: true,
      rolldownOptions: { input: [join(PROJECT, 'index.html'), join(PROJECT, BENCH_PAGE)] },
    },
  });
  const url = await serve(outDir);
  const sliders = [await openPage(`${url}${BENCH_PAGE}`)];
  if (options.against) sliders.push(await openPage(`${await serve(resolve(options.against))}${BENCH_PAGE}`));
  await measureSliders(sliders);
  for (const { page } of sliders) await page.context().close();
  await measureMerge(await openPage(url));
} finally {
  for (const end of ends.reverse()) await end();
  rmSync(scratch, { recursive: true, force: true });
}

interface Opened {
  page: Page;
  cdp: CDPSession;
}

async function serve(outDir: string): Promise<string> {
  const server = await preview({ root: PROJECT, build: { outDir }, preview: { port: 0, open: false } });
  ends.push(() => server.close());
  return server.resolvedUrls!.local[0]!;
}

/** A browser of its own for each, so that no page restores the state of another. */
async function openPage(address: string): Promise<Opened> {
  const executablePath = findChromium();
  const browser = await chromium.launchPersistentContext(mkdtempSync(join(scratch, 'profile-')), {
    ...(executablePath ? { executablePath } : {}),
    headless: false,
    viewport: { width: 1440, height: 900 },
    args: ['--headless=new', '--no-sandbox', ...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
  });
  ends.push(() => browser.close());
  const page = await browser.newPage();
  page.on('pageerror', (error) => console.error(error.message));
  await page.goto(address);
  await page.getByText(/^Ready:/).waitFor({ timeout: 60_000 });
  return { page, cdp: await browser.newCDPSession(page) };
}

/** This build's first, then the one that it is compared with. */
async function measureSliders(opened: readonly Opened[]): Promise<void> {
  const table: Record<string, Record<string, string>> = {};
  for (const { page } of opened) {
    await page.evaluate(() => window.addFourth());
    await page.waitForFunction(() => {
      const { plan, deltaStatistics } = window.studio.store.getState();
      return (
        plan.status === 'ready' &&
        plan.report?.contributors.length === 4 &&
        deltaStatistics.status === 'ready'
      );
    });
    // two runs side by side, and their difference
    await page.getByLabel('Add a run').selectOption('dare_ties');
  }
  for (const metric of METRICS) {
    for (const [i, { page, cdp }] of opened.entries()) {
      await page.getByLabel('Metric').selectOption(metric);
      await page.getByRole('slider', { name: 'density of kitchen' }).focus();
      await steps(page, ['Home', ...Array(10).fill('ArrowRight')]); // compiled by then
      await page.waitForTimeout(REST_MS); // 0 keeps nothing and has no plan
      const trace = await startTrace(cdp);
      await steps(page, Array(STEPS).fill('ArrowRight'));
      await page.waitForTimeout(REST_MS);
      const file = metric === METRICS[0] && i === 0 ? options.trace : undefined;
      table[`slider, ${metric}${OTHER[i]}`] = row(await trace(file));
    }
  }
  for (const [i, { page, cdp }] of opened.entries()) {
    await page.getByLabel('Metric').selectOption(METRICS[0]!);
    for (const [name, control, key] of TOGGLES) {
      await page.locator(control).first().focus();
      await steps(page, [key, key], TOGGLE_MS); // compiled by then
      const toggling = await startTrace(cdp);
      await steps(page, Array(TOGGLE_STEPS).fill(key), TOGGLE_MS);
      table[`${name}${OTHER[i]}`] = row(await toggling());
    }
    await page.getByRole('searchbox', { name: 'Filter tensors' }).click();
    const word = [...'layers.3 mlp'];
    await steps(page, word);
    await steps(
      page,
      word.map(() => 'Backspace'),
    );
    const typing = await startTrace(cdp);
    await steps(page, word);
    await page.waitForTimeout(REST_MS);
    table[`typing in the filter${OTHER[i]}`] = row(await typing());
  }
  const cells = await opened[0]!.page.locator('.heat-cell').count();
  console.log(`${cells} cells drawn; milliseconds of the main thread's processor time a step:`);
  console.table(table);
}

async function measureMerge({ page, cdp }: Opened): Promise<void> {
  await page.waitForTimeout(3000); // the pass over the sample has ended
  const merging = await startTrace(cdp);
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  const said = page.getByText(/^Merged in/).first();
  await said.waitFor({ timeout: 120_000 });
  const { tasks } = await merging();
  const long = tasks.filter((ms) => ms > 50);
  console.log(
    `sample: ${await said.textContent()}; main thread busy for ${tasks.reduce((a, b) => a + b, 0).toFixed(0)} ms; ` +
      `tasks of more than 50 ms: ${long.length}; the longest: ${tasks
        .slice(0, 5)
        .map((ms) => ms.toFixed(1))
        .join(', ')} ms`,
  );
}

/** Keys at an even pace, whether or not the page has answered: a slider on a busy machine does not rest either. */
async function steps(page: Page, keys: readonly string[], between = BETWEEN_MS): Promise<void> {
  const pressed: Promise<void>[] = [];
  for (const key of keys) {
    pressed.push(page.keyboard.press(key === ' ' ? 'Space' : key));
    await page.waitForTimeout(between);
  }
  await Promise.all(pressed);
}

/** The mean of all steps but the last, the worst of them, and what the last did more once it rested. */
function row({ steps: all, tasks }: MainThread): Record<string, string> {
  const moving = all.slice(0, -1);
  const mean = (of: (step: Parts) => number) => moving.reduce((a, step) => a + of(step), 0) / moving.length;
  const text = (ms: number | undefined) => (ms ?? 0).toFixed(1);
  const sums = moving.map(sum).sort((a, b) => a - b);
  const parts: Part[] = ['script', 'style', 'layout', 'paint', 'collection', 'other'];
  return {
    mean: text(mean(sum)),
    ...Object.fromEntries(parts.map((part) => [part, text(mean((step) => step[part]))])),
    median: text(sums[Math.floor(sums.length / 2)]),
    worst: text(sums.at(-1)),
    'then, at rest': text(sum(all.at(-1)!) - mean(sum)),
    'longest task': text(tasks[0]),
  };
}
