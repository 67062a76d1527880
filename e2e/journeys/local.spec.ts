/** Models of this computer: a folder through the browser's file input, and the error for a folder without a model. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, merge, openSample, test } from './studio';

const samples = join(import.meta.dirname, '../../public/samples');

test('a folder that holds no model is refused in words; one with a model becomes a contributor and is merged where it lies', async ({
  page,
}) => {
  await page.addInitScript(() => {
    // a browser without pickers: the file input is the way in
    Object.assign(window, { showDirectoryPicker: undefined });
  });
  await openSample(page);
  await page.getByRole('button', { name: 'Remove workshop' }).click();
  await page.getByRole('button', { name: '+ add' }).first().click();
  await page.getByRole('tab', { name: /computer|local/i }).click();
  const nothing = mkdtempSync(join(tmpdir(), 'amalgam-nothing-'));
  writeFileSync(join(nothing, 'notes.txt'), 'nothing');
  await page.getByLabel('Model folder').setInputFiles(nothing);
  await expect(page.getByText(/no model|None of the/i).first()).toBeVisible();
  rmSync(nothing, { recursive: true });

  await page.getByLabel('Model folder').setInputFiles(join(samples, 'workshop'));
  // one model is taken without another click
  await expect(page.getByRole('button', { name: 'Added: workshop' }).first()).toBeVisible();
  await page.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByRole('button', { name: 'Remove workshop' })).toBeVisible();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await merge(page);
});
