/**
 * What the studio's main thread does while a person works, in a production build and the installed Chromium:
 *
 *   npm run bench:interaction -- [--trace FILE.json]
 *
 * - a step of the density slider over a view of 32 layers, 9 modules and 4 contributors: processor time of the main thread
 * - typing into the filter of the table
 * - tasks of more than 50 ms while the sample is merged, by the engine in its worker
 *
 * `--trace` keeps a trace of the slider's steps for DevTools.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type CDPSession, chromium, type Page } from 'playwright';
import { build, preview } from 'vite';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from '../setup-chromium.mjs';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const BENCH_PAGE = 'e2e/bench/interaction.html';
const STEPS = 40;
/** Long enough for a step to be drawn before the next one, also on a busy machine. */
const BETWEEN_MS = 150;
const METRICS = ['Sparsity', 'Kept energy', 'Sign conflict'];

const { values: options } = parseArgs({ options: { trace: { type: 'string' } } });
const scratch = mkdtempSync(join(tmpdir(), 'amalgam-interaction-'));
try {
  await build({
    root: PROJECT,
    logLevel: 'warn',
    build: {
      outDir: join(scratch, 'dist'),
      emptyOutDir: true,
      rolldownOptions: { input: [join(PROJECT, 'index.html'), join(PROJECT, BENCH_PAGE)] },
    },
  });
  const server = await preview({
    root: PROJECT,
    build: { outDir: join(scratch, 'dist') },
    preview: { port: 0, open: false },
  });
  const url = server.resolvedUrls!.local[0]!;
  const executablePath = findChromium();
  const browser = await chromium.launchPersistentContext(join(scratch, 'profile'), {
    ...(executablePath ? { executablePath } : {}),
    headless: false,
    viewport: { width: 1440, height: 900 },
    args: ['--headless=new', '--no-sandbox', ...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
  });
  try {
    for (const [address, measure] of [
      [`${url}${BENCH_PAGE}`, measureSlider],
      [url, measureMerge],
    ] as const) {
      const page = await open(address);
      await measure(page);
      await page.close();
    }
  } finally {
    await browser.close();
    await server.close();
  }

  async function open(address: string): Promise<Page> {
    const page = await browser.newPage();
    await page.addInitScript(noteLongTasks);
    page.on('pageerror', (error) => console.error(error.message));
    await page.goto(address);
    await page.getByText(/^Ready:/).waitFor({ timeout: 240_000 });
    return page;
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function measureSlider(page: Page): Promise<void> {
  await page.evaluate(() => window.addFourth());
  await page.waitForFunction(() => {
    const { plan, profile } = window.studio.store.getState();
    return plan.status === 'ready' && plan.facts?.contributors.length === 4 && profile.status === 'ready';
  });
  const cdp = await page.context().newCDPSession(page);
  // processor time, not time on the clock: a busy machine makes the page wait, not work
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const keepTrace = options.trace === undefined ? null : await startTrace(cdp, options.trace);
  const table: Record<string, Record<string, string>> = {};
  for (const metric of METRICS) {
    await page.getByRole('radio', { name: metric }).click();
    await page.getByRole('slider', { name: 'density of kitchen' }).focus();
    await steps(page, 1, 'Home');
    await steps(page, 10, 'ArrowRight'); // compiled by then
    table[`slider, ${metric}`] = await measured(page, cdp, () => steps(page, STEPS, 'ArrowRight'), STEPS);
  }
  await keepTrace?.();
  await page.getByRole('searchbox', { name: 'Filter tensors' }).click();
  const word = 'layers.3 mlp';
  const type = async () => {
    for (const letter of word) await steps(page, 1, letter);
  };
  table['typing in the filter'] = await measured(page, cdp, type, word.length);
  const cells = await page.locator('.heat-cell').count();
  console.log(`${cells} cells drawn; main-thread milliseconds a step:`);
  console.table(table);
}

async function measureMerge(page: Page): Promise<void> {
  await page.waitForTimeout(2000);
  await page.evaluate(() => {
    window.longTasks.length = 0;
  });
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page
    .getByText(/^Merged in/)
    .first()
    .waitFor({ timeout: 300_000 });
  const said = await page
    .getByText(/^Merged in/)
    .first()
    .textContent();
  const tasks = await page.evaluate(() => window.longTasks);
  console.log(`sample: ${said}; tasks over 50 ms on the main thread meanwhile: ${tasks.length}`);
  if (tasks.length > 0)
    console.table(tasks.map(({ start, duration }) => ({ at: Math.round(start), ms: Math.round(duration) })));
}

/** Runs in the page, before anything else. */
function noteLongTasks(): void {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      window.longTasks.push({ start: startTime, duration });
    }
  }).observe({ type: 'longtask', buffered: true });
}

async function steps(page: Page, count: number, key: string): Promise<void> {
  for (let i = 0; i < count; i++) {
    await page.keyboard.press(key === ' ' ? 'Space' : key);
    await page.waitForTimeout(BETWEEN_MS);
  }
}

/** The browser's own counters of what its main thread did, for one step, and long tasks in all of them. */
async function measured(
  page: Page,
  cdp: CDPSession,
  work: () => Promise<void>,
  count: number,
): Promise<Record<string, string>> {
  const counters = async () => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return new Map(metrics.map(({ name, value }) => [name, value]));
  };
  const since = await page.evaluate(() => performance.now());
  const before = await counters();
  await work();
  const after = await counters();
  const each = (name: string) =>
    ((1000 * ((after.get(name) ?? 0) - (before.get(name) ?? 0))) / count).toFixed(1);
  const long = await page.evaluate((from) => window.longTasks.filter((t) => t.start >= from).length, since);
  return {
    'all tasks': each('TaskDuration'),
    script: each('ScriptDuration'),
    style: each('RecalcStyleDuration'),
    layout: each('LayoutDuration'),
    'tasks over 50 ms': String(long),
  };
}

/** Records what DevTools' performance panel shows; returns what ends and writes it. */
async function startTrace(cdp: CDPSession, file: string): Promise<() => Promise<void>> {
  const events: unknown[] = [];
  cdp.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['devtools.timeline', 'v8.execute', 'blink.user_timing', 'toplevel'] },
  });
  return async () => {
    const complete = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve));
    await cdp.send('Tracing.end');
    await complete;
    await writeFile(file, JSON.stringify({ traceEvents: events }));
  };
}
