/**
 * Takes the pictures of docs/screenshots: every tab after a merge of the sample, at three widths, light and dark.
 *
 *     npm run screenshots
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright';
import { build, preview } from 'vite';
import { CHROMIUM_ARGS, findChromium, SWIFTSHADER_ARGS } from './setup-chromium.mjs';

const FOLDER = join(import.meta.dirname, '../docs/screenshots');
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
];
const TABS = ['Plan', 'Layers', 'Run', 'Evaluate', 'Compare', 'Collapse', 'Output'];

const outDir = mkdtempSync(join(tmpdir(), 'amalgam-screenshots-'));
await build({ logLevel: 'warn', build: { outDir } });
const server = await preview({ build: { outDir }, preview: { host: '127.0.0.1', port: 4394 } });
mkdirSync(FOLDER, { recursive: true });
const executablePath = findChromium();
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    const profile = mkdtempSync(join(tmpdir(), 'amalgam-screenshots-profile-'));
    const context = await chromium.launchPersistentContext(profile, {
      colorScheme,
      args: [...CHROMIUM_ARGS, ...SWIFTSHADER_ARGS],
      ...(executablePath ? { executablePath } : {}),
    });
    const page = context.pages()[0] ?? (await context.newPage());
    await page.setViewportSize(SIZES[0]!);
    await page.goto('http://127.0.0.1:4394/');
    await page.getByText(/^Ready:/).waitFor();
    await page.getByRole('button', { name: 'Merge', exact: true }).click();
    await page.getByText(/^Merged in/).waitFor({ timeout: 60_000 });
    await page.getByRole('tab', { name: /^Evaluate/ }).click();
    await page.getByRole('button', { name: 'Measure', exact: true }).click();
    await page.getByRole('button', { name: 'Stop measuring' }).waitFor();
    await page
      .getByRole('button', { name: 'Stop measuring' })
      .waitFor({ state: 'detached', timeout: 180_000 });
    await page.getByRole('button', { name: 'Write', exact: true }).click();
    await page
      .getByText(/^60 tokens in/)
      .nth(4)
      .waitFor({ timeout: 120_000 });
    await page.getByRole('tab', { name: /^Compare/ }).click();
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    await page.getByText(/^56 tensors compared/).waitFor({ timeout: 180_000 });
    await page.getByRole('tab', { name: /^Collapse/ }).click();
    await page.getByRole('button', { name: 'Measure layers' }).click();
    await page.getByText(/^Layer \d of 6 goes/).waitFor({ timeout: 180_000 });
    for (const size of SIZES) {
      await page.setViewportSize(size);
      for (const tab of TABS) {
        await page.getByRole('tab', { name: new RegExp(`^${tab}`) }).click();
        if (tab === 'Layers') {
          await page.getByRole('radio', { name: 'Kept energy' }).click();
          await page
            .getByRole('gridcell', { name: /layer 3, mlp\.down_proj/ })
            .first()
            .click();
        }
        await page.waitForTimeout(300);
        await page.screenshot({
          path: join(FOLDER, `${tab.toLowerCase()}-${size.width}-${colorScheme}.png`),
        });
      }
    }
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
} finally {
  await server.close();
  rmSync(outDir, { recursive: true, force: true });
}
