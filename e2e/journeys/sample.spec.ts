/** A first visit: the sample is there, one click merges it on WebGPU, the files are right. */
import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { expectSampleTies } from './merged-folder';
import { expect, isOpen, mergeAgain, test } from './studio';

async function chooseEngine(page: Page, engine: 'WebGPU' | 'CPU'): Promise<void> {
  await page
    .getByRole('banner')
    .getByRole('button', { name: /typed arrays|swiftshader|WebGPU|CPU/i })
    .click();
  await page.getByRole('radio', { name: engine, exact: true }).click();
  await page.keyboard.press('Escape');
}

test('one click merges the sample on WebGPU within one ulp of the f64 oracle, and on the CPU to the same sha256', async ({
  page,
}) => {
  await page.goto('/');
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await chooseEngine(page, 'WebGPU');
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/^Merged in/)).toBeVisible();

  // every cell of the heatmap says what it shows
  await page.getByRole('tab', { name: /Layers/ }).click();
  await page.getByLabel('Metric').selectOption('mergedSparsity');
  const cell = page.getByRole('gridcell', { name: /layer 0, mlp\.down_proj, \d+\.\d.% at the base/ }).first();
  await expect(cell).toBeVisible();
  await cell.click();
  await expect(page.getByText('layers.0.mlp.down_proj').first()).toBeVisible();

  await page.getByRole('tab', { name: /Output/ }).click();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download model.safetensors' }).click();
  const file = await (await download).path();
  const { compared, onThreshold, canceled } = expectSampleTies(readFileSync(file));
  expect(compared + onThreshold).toBe(1_238_656);
  expect(canceled).toBeLessThan(20);

  const hash = () => page.getByTitle(/^tree hash [0-9a-f]{64}$/).getAttribute('title');
  const onWebGpu = await hash();
  await page.reload();
  await isOpen(page);
  await chooseEngine(page, 'CPU');
  await mergeAgain(page);
  await page.getByRole('tab', { name: /Output/ }).click();
  expect(await hash()).toBe(onWebGpu);
});

test('a folder the person picks receives the whole model', async ({ page }) => {
  // native pickers cannot be driven: one that answers with a folder of the private file system has the same interface
  await page.addInitScript(() => {
    const root = navigator.storage.getDirectory();
    Object.assign(window, {
      showDirectoryPicker: () => root.then((r) => r.getDirectoryHandle('picked', { create: true })),
    });
  });
  await page.goto('/');
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('tab', { name: /Output/ }).click();
  await page.getByRole('radio', { name: /folder/i }).click();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/^Merged in/)).toBeVisible();
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
