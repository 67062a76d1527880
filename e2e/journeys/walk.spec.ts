/** The newcomer's path, by clicks alone: a saved merge in three, all methods under comparison by two more. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Locator } from '@playwright/test';
import { treeHashOfFile } from '../tree-hash';
import { expectSampleTies } from './merged-folder';
import { expect, test } from './studio';

test('a saved merge in three clicks, every method compared by two more', async ({ page }) => {
  let clicks = 0;
  const click = async (target: Locator) => {
    clicks++;
    await target.click();
  };
  await page.goto('/');
  await expect(page.getByText(/^Ready:/)).toBeVisible();

  await click(page.getByRole('button', { name: 'Merge', exact: true }));
  await expect(page.getByText(/^Merged in/)).toBeVisible();
  await click(page.getByRole('button', { name: 'Get the files' }));
  const download = page.waitForEvent('download');
  await click(page.getByRole('button', { name: 'Download as .zip' }));
  expect((await download).suggestedFilename()).toBe('kitchen-harbour-workshop-ties.zip');
  await expect(page.getByText(/\.zip, .*, is with your browser’s downloads/)).toBeVisible();
  expect(clicks).toBeLessThanOrEqual(3);
  const weights = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download model.safetensors' }).click();
  const file = await (await weights).path();
  expectSampleTies(readFileSync(file));
  await page.getByRole('button', { name: 'copy sha256 of model.safetensors' }).click();
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
  await expect(page.getByTitle(`sha256 ${sha256}`)).toBeVisible();
  await expect(page.getByTitle(treeHashOfFile(file).replace(':', ' hash '))).toBeVisible();

  clicks = 0;
  await click(page.getByRole('tab', { name: /^Evaluate/ }));
  await click(page.getByRole('button', { name: /^Benchmark \d+ methods/ }));
  // every method is at work now; the verdict stands above the table when they are done, without another click
  await expect(page.getByRole('progressbar', { name: 'Measuring' })).toBeVisible();
  await expect(page.getByRole('row', { name: /DARE/ }).first()).toBeVisible();
  expect(clicks).toBe(2);
});
