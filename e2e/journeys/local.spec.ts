/** Models of this computer: a folder through the browser's file input, and the error for a folder without a model. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from './studio';

const samples = join(import.meta.dirname, '../../public/samples');

test('a local folder becomes a contributor and is merged where it lies', async ({ page }) => {
  await page.addInitScript(() => {
    // a browser without pickers: the file input is the way in
    Object.assign(window, { showDirectoryPicker: undefined });
  });
  await page.goto('/');
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('button', { name: 'Remove workshop' }).click();
  await page.getByRole('button', { name: '+ add' }).first().click();
  await page.getByRole('tab', { name: /computer|local/i }).click();
  await page.getByLabel('Model folder').setInputFiles(join(samples, 'workshop'));
  // one model is taken without another click
  await expect(page.getByRole('button', { name: 'Added: workshop' }).first()).toBeVisible();
  await page.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByRole('switch', { name: 'Merge workshop' })).toBeVisible();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/^Merged in/)).toBeVisible();
});

test('a folder that holds no model is refused in words', async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'amalgam-nothing-'));
  writeFileSync(join(folder, 'notes.txt'), 'nothing');
  await page.goto('/');
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('button', { name: '+ add' }).first().click();
  await page.getByRole('tab', { name: /computer|local/i }).click();
  await page.getByLabel('Model folder').setInputFiles(folder);
  await expect(page.getByText(/no model|None of the/i).first()).toBeVisible();
  rmSync(folder, { recursive: true });
});
