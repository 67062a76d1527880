/**
 * Work of the studio's main thread while a user works, in a production build and the installed Chromium:
 *
 *   npm run bench:interaction
 *
 * - a step of the density slider over a view of 32 layers, 4 contributors and 2 runs with their difference, and what follows
 *   once it rests
 * - another metric, and a run that is hidden or shown
 * - typing into the filter of the table
 * - the longest tasks while the sample is merged, by the engine in its worker
 *
 * Everything is processor time of the main thread, from traces.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CDPSession, chromium, type Page } from 'playwright';
import { build, preview } from 'vite';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const BENCH_PAGE = 'e2e/bench/interaction.html';
const STEPS = 40;
/** A step is drawn before the next one comes; the slider does not rest in between. */
const BETWEEN_MS = 100;
/** After this the studio has caught up with a slider that rests. */
const REST_MS = 1200;
const METRICS = ['mergedSparsity', 'trimmed', 'keptEnergy', 'lostInVote', 'signConflict', 'outputChange'];

/** Controls that change the view: name, selector, key. */
const TOGGLES = [
  ['another metric', '.layers-bar select', 'ArrowDown'],
  ['a run hidden or shown', '.run-chip:nth-child(2) .run-toggle', 'Enter'],
] as const;
const TOGGLE_STEPS = 8;
/** All work after a toggle is counted with it. */
const TOGGLE_MS = 700;

/** Work of a page's main thread, from a trace of Chromium: processor time, not time on the clock. */
interface TraceEvent {
  name: string;
  /** `X`: complete, with duration. */
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds on the clock. */
  ts: number;
  dur?: number;
  /** Microseconds of the thread's own processor time. */
  tdur?: number;
  args?: { name?: string; data?: { type?: string } };
}

type Part = 'script' | 'style' | 'layout' | 'paint' | 'collection' | 'other';

/** Milliseconds of processor time, by what they went into. */
type Parts = Record<Part, number>;

interface MainThread {
  /** Work from each key to the next, the last up to the end. */
  steps: Parts[];
  /** Milliseconds of every task, the longest first. */
  tasks: number[];
}

const CATEGORIES = ['devtools.timeline', 'toplevel', 'v8.execute', 'blink.user_timing'];
const TASK = 'ThreadControllerImpl::RunTask';

const PARTS: ReadonlyMap<string, Part> = new Map([
  ...[
    'FunctionCall',
    'EvaluateScript',
    'EventDispatch',
    'TimerFire',
    'RunMicrotasks',
    'FireAnimationFrame',
  ].map((name) => [name, 'script'] as const),
  ...['UpdateLayoutTree', 'ParseAuthorStyleSheet'].map((name) => [name, 'style'] as const),
  ...['Layout', 'HitTest'].map((name) => [name, 'layout'] as const),
  ...['PrePaint', 'Paint', 'Layerize', 'Commit'].map((name) => [name, 'paint'] as const),
  ...['MinorGC', 'MajorGC'].map((name) => [name, 'collection'] as const),
]);

const scratch = mkdtempSync(join(tmpdir(), 'amalgam-interaction-'));
const ends: (() => Promise<unknown>)[] = [];
try {
  const outDir = join(scratch, 'dist');
  await build({
    root: PROJECT,
    logLevel: 'warn',
    build: {
      outDir,
      emptyOutDir: true,
      rolldownOptions: { input: [join(PROJECT, 'index.html'), join(PROJECT, BENCH_PAGE)] },
    },
  });
  const server = await preview({ root: PROJECT, build: { outDir }, preview: { port: 0, open: false } });
  ends.push(() => server.close());
  const url = server.resolvedUrls!.local[0]!;
  const opened = await openPage(`${url}${BENCH_PAGE}`);
  await measureSliders(opened);
  await opened.page.context().close();
  await measureMerge(await openPage(url));
} finally {
  for (const end of ends.reverse()) await end();
  rmSync(scratch, { recursive: true, force: true });
}

interface Opened {
  page: Page;
  cdp: CDPSession;
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

async function measureSliders({ page, cdp }: Opened): Promise<void> {
  const table: Record<string, Record<string, string>> = {};
  await page.evaluate(() => window.addFourth());
  await page.waitForFunction(() => {
    const { plan, deltaStatistics } = window.studio.store.getState();
    return (
      plan.status === 'ready' && plan.report?.contributors.length === 4 && deltaStatistics.status === 'ready'
    );
  });
  // two runs side by side, and their difference
  await page.getByLabel('Add a run').selectOption('dare_ties');
  for (const metric of METRICS) {
    await page.getByLabel('Metric').selectOption(metric);
    await page.getByRole('slider', { name: 'weight of kitchen' }).focus();
    await steps(page, ['Home', ...Array(10).fill('ArrowRight')]); // compiled by then
    await page.waitForTimeout(REST_MS);
    const trace = await startTrace(cdp);
    await steps(page, Array(STEPS).fill('ArrowRight'));
    await page.waitForTimeout(REST_MS);
    table[`slider, ${metric}`] = row(await trace());
  }
  await page.getByLabel('Metric').selectOption(METRICS[0]!);
  for (const [name, control, key] of TOGGLES) {
    await page.locator(control).first().focus();
    await steps(page, [key, key], TOGGLE_MS); // compiled by then
    const toggling = await startTrace(cdp);
    await steps(page, Array(TOGGLE_STEPS).fill(key), TOGGLE_MS);
    table[name] = row(await toggling());
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
  table['typing in the filter'] = row(await typing());
  const cells = await page.locator('.heat-cell').count();
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

/** Starts a trace; the returned function ends it. */
async function startTrace(cdp: CDPSession): Promise<() => Promise<MainThread>> {
  const events: TraceEvent[] = [];
  const collect = ({ value }: { value: object[] }) => {
    for (const event of value) events.push(event as TraceEvent);
  };
  cdp.on('Tracing.dataCollected', collect);
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: CATEGORIES },
  });
  return async () => {
    const complete = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve));
    await cdp.send('Tracing.end');
    await complete;
    cdp.off('Tracing.dataCollected', collect);
    return mainThread(events);
  };
}

/** Adds up the busiest main thread of a trace. */
function mainThread(events: readonly TraceEvent[]): MainThread {
  const threads = events
    .filter((e) => e.name === 'thread_name' && e.args?.name === 'CrRendererMain')
    .map(({ pid, tid }) => events.filter((e) => e.pid === pid && e.tid === tid && e.ph === 'X'))
    .sort((a, b) => b.length - a.length);
  const thread = (threads[0] ?? []).sort((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0));
  const keys = thread.filter((e) => e.name === 'EventDispatch' && e.args?.data?.type === 'keydown');
  const found: MainThread = { steps: [], tasks: [] };
  let parts = none(); // before the first key
  const open: { end: number; part: Part }[] = [];
  for (const event of thread) {
    while (open.length > 0 && open.at(-1)!.end <= event.ts) open.pop();
    const around = open.at(-1);
    if (!around && event.name !== TASK) continue;
    const end = event.ts + (event.dur ?? 0);
    if (!around && keys[found.steps.length] && keys[found.steps.length]!.ts < end) {
      parts = none();
      found.steps.push(parts);
    }
    const own = (event.tdur ?? 0) / 1000;
    const part = PARTS.get(event.name) ?? around?.part ?? 'other';
    parts[part] += own;
    if (around) parts[around.part] -= own;
    else found.tasks.push(own);
    open.push({ end, part });
  }
  found.tasks.sort((a, b) => b - a);
  return found;
}

function none(): Parts {
  return { script: 0, style: 0, layout: 0, paint: 0, collection: 0, other: 0 };
}

/** All parts together. */
function sum(parts: Parts): number {
  return Object.values(parts).reduce((a, b) => a + b, 0);
}
