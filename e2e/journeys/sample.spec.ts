/** A first visit: the newcomer's path by clicks alone, the files of both engines; a folder that receives the model. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Locator } from '@playwright/test';
import { treeHashOfFile } from '../tree-hash';
import { expectSampleMean } from './merged-folder';
import { downloaded, expect, isOpen, merge, mergeAgain, openSample, show, test } from './studio';

test('a saved merge in two clicks, within one ulp of the f64 oracle, and on WebGPU to the same bytes; every method compared by two more', async ({
  page,
}) => {
  let clicks = 0;
  const click = async (target: Locator) => {
    clicks++;
    await target.click();
  };
  await openSample(page);
  await click(page.getByRole('button', { name: 'Merge', exact: true }));
  await expect(page.getByText(/^Merged in/)).toBeVisible();
  await expect(page.getByText('Is it better?')).toBeVisible();
  const download = page.waitForEvent('download');
  await click(page.getByRole('button', { name: 'Save files' }));
  expect((await download).suggestedFilename()).toBe('kitchen-harbour-workshop-task_arithmetic.zip');
  expect(clicks).toBeLessThanOrEqual(2);
  await page.getByRole('button', { name: 'GGUF…' }).click();
  await expect(page.getByLabel('GGUF for llama.cpp')).toBeFocused();
  const again = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download as .zip' }).click();
  await again;
  await expect(page.getByText(/\.zip, .*, is with your browser’s downloads/)).toBeVisible();
  const { path: file } = await downloaded(page, 'model.safetensors');
  const { compared, canceled } = expectSampleMean(readFileSync(file));
  expect(compared).toBe(1_238_656);
  expect(canceled).toBeLessThan(20);
  await page.getByRole('button', { name: 'copy sha256 of model.safetensors' }).click();
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
  await expect(page.getByTitle(`sha256 ${sha256}`)).toBeVisible();
  await expect(page.getByTitle(treeHashOfFile(file).replace(/^tree2:/, 'tree hash '))).toBeVisible();

  // every cell of the heatmap says what it shows
  await show(page, 'Layers');
  await page.getByLabel('Metric').selectOption('mergedSparsity');
  const cell = page.getByRole('gridcell', { name: /layer 0, mlp\.down_proj, \d+\.\d.% at the base/ }).first();
  await cell.click();
  await expect(page.getByText('layers.0.mlp.down_proj').first()).toBeVisible();

  await page.reload();
  await isOpen(page);
  await page.getByRole('banner').getByRole('button', { name: /^CPU/ }).click();
  await page.getByRole('radio', { name: 'WebGPU', exact: true }).click();
  await page.keyboard.press('Escape');
  await mergeAgain(page);
  await expect(page.getByRole('banner').getByRole('button', { name: /swiftshader/i })).toBeVisible();
  await show(page, 'Files');
  await expect(page.locator('.file-where')).toContainText('task_arithmetic-2');
  await expect(page.getByTitle(treeHashOfFile(file).replace(/^tree2:/, 'tree hash '))).toBeVisible();

  clicks = 0;
  await show(page, 'Measure', click);
  await click(
    page
      .getByRole('region', { name: 'Table of measurements' })
      .getByRole('button', { name: 'Find the best' }),
  );
  // without another click; what comes of it is recommended.spec's
  await expect(page.getByRole('progressbar', { name: 'Measuring' })).toBeVisible();
  expect(clicks).toBe(2);
});

test('a folder the person picks receives the whole model', async ({ page }) => {
  // native pickers cannot be driven: one that answers with a folder of the private file system has the same interface
  await page.addInitScript(() => {
    const root = navigator.storage.getDirectory();
    Object.assign(window, {
      showDirectoryPicker: () => root.then((r) => r.getDirectoryHandle('picked', { create: true })),
    });
  });
  await openSample(page);
  await show(page, 'Files');
  await page.getByRole('radio', { name: /folder/i }).click();
  await merge(page);
  const files = await page.evaluate(async () => {
    const picked = await (await navigator.storage.getDirectory()).getDirectoryHandle('picked');
    const found: [string, number][] = [];
    for await (const folder of picked.values()) {
      for await (const file of (folder as FileSystemDirectoryHandle).values()) {
        found.push([file.name, (await (file as FileSystemFileHandle).getFile()).size]);
      }
    }
    return found.sort();
  });
  expect(files.map(([name]) => name)).toContain('model.safetensors');
  expect(files.map(([name]) => name)).toContain('config.json');
  expect(Object.fromEntries(files)['model.safetensors']).toBeGreaterThan(1_238_656 * 2);
});
