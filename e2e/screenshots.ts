/**
 * Takes the pictures of docs/screenshots: a newcomer's way from opening the page to the best method, and every tab after
 * a merge of the sample, at three widths, light and dark. On a slow machine it takes long, and gives up nowhere.
 *
 *     npm run screenshots
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright';
import { build, preview } from 'vite';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from './setup-chromium.mjs';

const FOLDER = join(import.meta.dirname, '../docs/screenshots');
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
];
/** The newcomer's pictures stand side by side in the README. */
const WALK = { width: 1280, height: 800 };
const TABS = ['Plan', 'Layers', 'Run', 'Evaluate', 'Compare', 'Collapse', 'Output'];

/** Patience with one step, in milliseconds: all methods are measured on a processor that may be busy. */
const PATIENCE = 1_800_000;

const outDir = mkdtempSync(join(tmpdir(), 'amalgam-screenshots-'));
await build({ logLevel: 'warn', build: { outDir } });
const server = await preview({ build: { outDir }, preview: { host: '127.0.0.1', port: 4394 } });
const url = server.resolvedUrls?.local[0] ?? 'http://127.0.0.1:4394/';
mkdirSync(FOLDER, { recursive: true });
const executablePath = findChromium();
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    const profile = mkdtempSync(join(tmpdir(), 'amalgam-screenshots-profile-'));
    const context = await chromium.launchPersistentContext(profile, {
      colorScheme,
      reducedMotion: 'reduce',
      args: [...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
      ...(executablePath ? { executablePath } : {}),
    });
    context.setDefaultTimeout(PATIENCE);
    const page = context.pages()[0] ?? (await context.newPage());
    await work(page, colorScheme);
    await page.getByRole('tab', { name: /^Layers/ }).click();
    await page.getByLabel('Add a run').selectOption('dare_linear');
    await page
      .getByRole('gridcell', { name: /layer 3, mlp\.down_proj/ })
      .first()
      .click();
    for (const size of SIZES) {
      await page.setViewportSize(size);
      const tabs = size.width < 760 ? ['Recipe', ...TABS] : TABS;
      for (const tab of tabs) {
        await page.getByRole('tab', { name: new RegExp(`^${tab}`) }).click();
        if (tab === 'Output') await filesRead(page);
        await picture(page, `${tab.toLowerCase()}-${size.width}-${colorScheme}`);
      }
    }
    await page.setViewportSize(SIZES[0]!);
    await page.getByRole('tab', { name: 'Layers' }).click();
    await page.getByRole('radio', { name: 'Both' }).click();
    await page.getByRole('textbox', { name: 'Recipe as YAML' }).waitFor();
    await picture(page, `yaml-1440-${colorScheme}`);
    await page.getByRole('radio', { name: 'Form' }).click();
    await page.getByRole('button', { name: 'Examples' }).click();
    await page.getByRole('button', { name: /^In two stages/ }).waitFor();
    await picture(page, `examples-1440-${colorScheme}`);
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
} finally {
  await server.close();
  rmSync(outDir, { recursive: true, force: true });
}

/** Merges, measures, writes, compares and collapses; on its way, in the light, the newcomer's pictures. */
async function work(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  const walk = async (name: string) => {
    if (colorScheme === 'light') await picture(page, `walk-${name}`);
  };
  await page.setViewportSize(WALK);
  await page.goto(url);
  await page.getByText(/^Ready:/).waitFor();
  await page.getByText(/move a slider and it redraws/).waitFor();
  await walk('1-open');
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByText(/^Merged in/).waitFor();
  await walk('2-merged');
  await page.getByRole('button', { name: 'Get the files' }).click();
  await page.getByRole('button', { name: 'Download all' }).waitFor();
  await walk('3-files');
  await page.getByRole('tab', { name: /^Evaluate/ }).click();
  await page.getByRole('button', { name: /^Compare all \d+ methods/ }).click();
  const stop = page.getByRole('button', { name: 'Stop measuring' });
  await stop.waitFor();
  await stop.waitFor({ state: 'detached' });
  await walk('4-best');
  await page.setViewportSize(SIZES[0]!);
  await page.getByRole('button', { name: 'Measure', exact: true }).click();
  await stop.waitFor();
  await stop.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Write', exact: true }).click();
  await page
    .getByText(/^60 tokens in/)
    .nth(4)
    .waitFor();
  await page.getByRole('tab', { name: /^Compare/ }).click();
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  await page.getByText(/^56 tensors compared/).waitFor();
  await page.getByRole('tab', { name: /^Collapse/ }).click();
  await page.getByRole('button', { name: 'Measure layers' }).click();
  await page.getByText(/^Layer \d of 6 goes/).waitFor();
}

/** The sizes of the files are known: until then they cannot be downloaded. */
async function filesRead(page: Page): Promise<void> {
  await page.locator('button:not([aria-disabled="true"])', { hasText: 'Download all' }).waitFor();
}

/** The page from the top of what it shows, at rest. */
async function picture(page: Page, name: string): Promise<void> {
  await page.evaluate(() => {
    for (const part of document.querySelectorAll('.tab-content, .recipe, .inspector')) part.scrollTop = 0;
  });
  await page.mouse.move(0, 0);
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
}
