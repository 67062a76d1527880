/** Merges that are cut off: by a reload, another tab, a full storage, a crash of the GPU process, and SIGKILL. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { DOWNLOAD_SIZES } from '../../src/store/blob-record';
import { startChromium } from '../faults/chromium-process';
import { killTest } from '../faults/kill';
import { STUDIO_URL } from './addresses';
import { expect, isOpen, mergeAgain, show, test } from './studio';

/** A tab that merges asks before it goes. */
const goAnyway = (page: Page) => page.on('dialog', (dialog) => void dialog.accept());

async function openStudio(page: Page, engine: 'WebGPU' | 'CPU'): Promise<void> {
  await page.goto(STUDIO_URL);
  await isOpen(page);
  await page
    .getByRole('banner')
    .getByRole('button', { name: /typed arrays|WebAssembly|swiftshader|WebGPU|CPU/i })
    .click();
  await page.getByRole('radio', { name: engine, exact: true }).click();
  await page.keyboard.press('Escape');
}

/** From here on the engine rests at every progress report: its merge then takes long enough to do something in the middle of it. */
async function slowDown(page: Page, ms = 300): Promise<void> {
  const engines = page.workers().filter((worker) => worker.url().includes('main.worker'));
  expect(engines).toHaveLength(1);
  await engines[0]!.evaluate((rest) => {
    const { buffer } = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const { postMessage } = MessagePort.prototype;
    MessagePort.prototype.postMessage = function (...all: unknown[]) {
      // calls of its threads have a type
      if (!Object.hasOwn(Object(all[0]), 'type')) Atomics.wait(new Int32Array(buffer), 0, 0, rest);
      return Reflect.apply(postMessage, this, all);
    };
  }, ms);
}

const merge = (page: Page) => page.getByRole('button', { name: 'Merge', exact: true }).click();
/** Said in the bar below, and on the tab of the run where that is open. */
const done = (page: Page) => page.getByText(/^Merged in/).first();
const merged = (page: Page) => expect(done(page)).toBeVisible();
/** Some tensors are merged, and some are not. */
const underWay = (page: Page) =>
  expect(page.locator('.run-line', { hasText: /^[1-9]\d? of 56/ })).toBeVisible();

async function hashOf(page: Page): Promise<string> {
  await show(page, 'Files');
  return (await page.getByTitle(/^tree hash [0-9a-f]{64}$/).getAttribute('title'))!;
}

let reference: string | undefined;

/** The hash of a merge that nothing disturbs, made in the first browser that has resumed one: it is the same in all. */
async function undisturbed(page: Page): Promise<string> {
  if (reference === undefined) {
    await openStudio(page, 'CPU');
    await mergeAgain(page);
    reference = await hashOf(page);
  }
  return reference;
}

/** A second tab shows the merge of `page`, does not start one, and takes it over; its hash is that of one undisturbed. */
async function takenOver(page: Page): Promise<void> {
  const second = await page.context().newPage();
  await second.goto(STUDIO_URL);
  await expect(second.getByText('Another tab is merging')).toBeVisible();
  await expect(second.getByRole('button', { name: 'Merge', exact: true })).toHaveAttribute(
    'aria-disabled',
    'true',
  );
  await second.getByRole('button', { name: 'Take over' }).click();
  await merged(second);
  const taken = await hashOf(second);
  await expect(page.getByText(/^Paused/).first()).toBeVisible();
  await second.close();
  expect(await undisturbed(page)).toBe(taken);
}

test('R47 R39: after a reload in the middle a merge on WebGPU is offered, resumed, and taken over by a second tab', async ({
  page,
}) => {
  goAnyway(page);
  await openStudio(page, 'WebGPU');
  await slowDown(page);
  await merge(page);
  await underWay(page);
  await page.reload();
  await expect(page.getByText('is not finished')).toBeVisible();
  // what it measures of the sample is told as well
  await slowDown(page, 150);
  await page.getByRole('button', { name: 'Resume' }).click();
  await underWay(page);
  await takenOver(page);
});

test('R47 R39: nothing of a canceled merge looks like a model, discarding leaves nothing; a second tab takes the next one over', async ({
  page,
}) => {
  goAnyway(page);
  await openStudio(page, 'CPU');
  await slowDown(page);
  await merge(page);
  await underWay(page);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByText('Canceled. It can be resumed.')).toBeVisible();
  const left = () =>
    page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const found: string[] = [];
      try {
        for await (const output of (await root.getDirectoryHandle('outputs')).values()) {
          for await (const name of (output as FileSystemDirectoryHandle).keys()) found.push(name);
        }
      } catch (thrown) {
        // it goes while it is looked at
        found.push((thrown as DOMException).name);
      }
      return found.sort();
    });
  expect(await left()).toEqual(['files', 'run.jsonl']);
  await page.getByRole('button', { name: 'Discard' }).click();
  await expect.poll(left).toEqual([]);
  // an engine that is canceled while it rests may have been replaced
  await slowDown(page);
  await merge(page);
  await underWay(page);
  await takenOver(page);
});

test('R35: the storage fills up in the middle; with room again the merge goes on', async ({
  page,
  context,
}) => {
  goAnyway(page);
  await openStudio(page, 'CPU');
  const session = await context.newCDPSession(page);
  const origin = new URL(STUDIO_URL).origin;
  const quota = (quotaSize?: number) =>
    session.send('Storage.overrideQuotaForOrigin', {
      origin,
      ...(quotaSize === undefined ? {} : { quotaSize }),
    });
  // room for a part of the output beside what the page keeps of itself
  const used = await page.evaluate(async () => (await navigator.storage.estimate()).usage ?? 0);
  await quota(used + 1_500_000);
  await merge(page);
  await expect(page.getByText(/no space left|no room/i).first()).toBeVisible();
  await expect(page.getByText('is not finished')).toBeVisible();
  await quota();
  await page.getByRole('button', { name: 'Resume' }).click();
  await merged(page);
  const resumed = await hashOf(page);
  expect(await undisturbed(page)).toBe(resumed);
});

test('R41 R42: the GPU process crashes; the merge goes on by itself, or after a reload, to the same bytes', async () => {
  const profile = await mkdtemp(join(tmpdir(), 'amalgam-gpu-'));
  const chromium = await startChromium(profile);
  try {
    const { page, browser } = chromium;
    goAnyway(page);
    await openStudio(page, 'WebGPU');
    await slowDown(page, 100);
    await merge(page);
    await underWay(page);
    const session = await browser.newBrowserCDPSession();
    await session.send('Browser.crashGpuProcess');
    const outcome = done(page).or(page.getByText('Reload the page and continue').first());
    await expect(outcome.first()).toBeVisible();
    if (!(await done(page).isVisible())) {
      await page.reload();
      await page.getByRole('button', { name: 'Resume' }).click();
      await merged(page);
    }
    const recovered = await hashOf(page);
    expect(await undisturbed(page)).toBe(recovered);
  } finally {
    await chromium.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});

test('R47: SIGKILL at a seeded moment of a download and of a merge; npm run faults:kill has more', async () => {
  const outcomes = await killTest(2, 20_261_120);
  expect(outcomes.map(({ moment }) => moment.phase)).toEqual(['downloading', 'merging']);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ same: true, wrong: [] });
    expect(outcome.fetchedAgain).toBeLessThanOrEqual(DOWNLOAD_SIZES.request);
  }
});
