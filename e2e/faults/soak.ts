/**
 * A hundred merges of the sample in one tab: the memory of the page's processes after the last may be at most 5 % above that
 * after the 50th. The browser's own process may grow with the files that were ever made: a bare page that makes and removes
 * eight files 400 times lets it grow by 32 kB a time. Linux only: proportional set sizes are read from /proc.
 *
 *     npm run faults:soak -- [--merges 100] [--engine cpu|webgpu] [--keep]
 *
 * `--keep`: outputs stay in the browser's storage, where the seconds of a merge may not grow with their number.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Page, chromium as playwright } from 'playwright';
import type { BackendChoice } from '../../src/reports/backend';
import { browserFiles, browserOwnBytes } from '../browser-memory';
import { startBuiltStudio } from '../built-studio';
import { startChromium } from './chromium-process';

const { values } = parseArgs({
  options: {
    merges: { type: 'string', default: '200' },
    engine: { type: 'string', default: 'cpu' },
    keep: { type: 'boolean', default: false },
  },
});
const merges = Number(values.merges);
const MOST_GROWTH = 0.05;
/** Growth in bytes of the browser's own process with a merge, at most. */
const MOST_BROWSER_BYTES = 64_000;
/** The merge whose memory the last one's is compared with: by then every thread's code for all kinds of work is compiled. */
const WARM = 50;
/** Readings of the memory, a second apart: the least counts, since what is never given back is in each. */
const READINGS = 5;

const server = await startBuiltStudio([]);
const recipe = {
  mergeMethod: 'ties',
  baseModel: 'samples/base',
  models: ['samples/base+samples/kitchen', 'samples/workshop'].map((model) => ({
    model,
    parameters: { weight: 1, density: 0.2 },
  })),
  parameters: {},
  amalgam: {},
};
const profile = mkdtempSync(join(tmpdir(), 'amalgam-soak-'));
const chromium = await startChromium(profile);
const port = Number(readFileSync(join(profile, 'DevToolsActivePort'), 'utf8').split('\n')[0]);

/**
 * Attaches to the page, runs `act`, and detaches. Nothing may stay attached while it merges: a page under a debugger
 * retains the bodies of its responses.
 */
async function attached<T>(act: (page: Page) => Promise<T>): Promise<T> {
  const browser = await playwright.connectOverCDP(`http://127.0.0.1:${port}`);
  try {
    return await act(browser.contexts()[0]!.pages()[0]!);
  } finally {
    await browser.close();
  }
}

/** Merges `from` to `to`; the page shows its progress in its title. */
async function mergeAll(from: number, to: number): Promise<void> {
  await attached((page) =>
    page.evaluate(
      ({ recipe, engine, from, to, keep }) => {
        (async () => {
          for (let i = from; i <= to; i++) {
            const name = `soak-${i}`;
            const request = { recipe, engine, destination: { kind: 'downloads', name } } as const;
            await window.amalgamCalls!.merge(request, () => {});
            document.title = name;
            // the outputs are files, not memory; but a disk is not endless
            if (keep) continue;
            const outputs = await (await navigator.storage.getDirectory()).getDirectoryHandle('outputs');
            await outputs.removeEntry(name, { recursive: true });
          }
        })().catch((thrown) => {
          document.title = `failed: ${thrown}`;
        });
      },
      { recipe, engine: values.engine as BackendChoice, from, to, keep: values.keep },
    ),
  );
  for (;;) {
    const targets: { type: string; title: string }[] = await (
      await fetch(`http://127.0.0.1:${port}/json/list`)
    ).json();
    const title = targets.find(({ type }) => type === 'page')?.title ?? 'failed: the page is gone';
    if (title === `soak-${to}`) return;
    if (title.startsWith('failed')) throw new Error(title);
    await delay(500);
  }
}

/** Collects garbage, which is no leak, in the page and its workers; returns how many workers there are. */
async function collectGarbage(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  const workers: string[] = [];
  const answered = new Set<string>();
  session.on('Target.attachedToTarget', ({ sessionId, targetInfo }) => {
    if (targetInfo.type === 'worker') workers.push(sessionId);
  });
  session.on('Target.receivedMessageFromTarget', ({ sessionId }) => answered.add(sessionId));
  await session.send('Target.setAutoAttach', {
    autoAttach: true,
    waitForDebuggerOnStart: false,
    flatten: false,
  });
  await session.send('HeapProfiler.collectGarbage');
  const message = JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' });
  for (const sessionId of workers) {
    await session.send('Target.sendMessageToTarget', { sessionId, message });
    while (!answered.has(sessionId)) await delay(50);
  }
  if (workers.length === 0) throw new Error('the page has no engine');
  return workers.length;
}

/** Memory in bytes, files and workers of the browser after a garbage collection. */
async function held() {
  const workers = await attached(collectGarbage);
  const bytes = { browser: Number.POSITIVE_INFINITY, page: Number.POSITIVE_INFINITY };
  for (let reading = 0; reading < READINGS; reading++) {
    await delay(1000);
    const { browser, page } = browserOwnBytes(chromium.pid);
    bytes.browser = Math.min(bytes.browser, browser);
    bytes.page = Math.min(bytes.page, page);
  }
  return { bytes, files: browserFiles(chromium.pid), workers };
}

try {
  await chromium.page.goto(server.callsUrl);
  await chromium.page.waitForFunction(() => window.amalgamCalls !== undefined);
  await chromium.page.evaluate(() => window.amalgamCalls!.openSample());
  await chromium.browser.close();
  const stops = Array.from({ length: Math.ceil(merges / 25) }, (_, i) => Math.min(merges, 25 * (i + 1)));
  let done = 0;
  let warm: { browser: number; page: number } | undefined;
  let growth = 0;
  let browserGrowth = 0;
  for (const stop of stops) {
    const began = performance.now();
    await mergeAll(done + 1, stop);
    const each = (performance.now() - began) / 1000 / (stop - done);
    done = stop;
    const { bytes, files, workers } = await held();
    console.log(
      `after ${stop} merges of ${each.toFixed(2)} s: ${(bytes.page / 1e6).toFixed(1)} MB in the page's processes, ${(bytes.browser / 1e6).toFixed(1)} MB in the browser's own, ${files} open files, ${workers} workers`,
    );
    if (stop < WARM) continue;
    warm ??= bytes;
    growth = bytes.page / warm.page - 1;
    browserGrowth = (bytes.browser - warm.browser) / Math.max(1, stop - WARM);
  }
  console.log(
    `since merge ${WARM} the page has grown by ${(100 * growth).toFixed(1)} %; at most ${100 * MOST_GROWTH} % is allowed`,
  );
  console.log(
    `the browser's own process by ${(browserGrowth / 1000).toFixed(0)} kB a merge; at most ${MOST_BROWSER_BYTES / 1000} kB are allowed`,
  );
  process.exitCode = growth <= MOST_GROWTH && browserGrowth <= MOST_BROWSER_BYTES ? 0 : 1;
} finally {
  await chromium.kill();
  await server.close();
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
