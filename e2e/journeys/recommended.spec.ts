/** The recommended merge: one press, a result that says how it compares; stopped in the middle and reloaded, it goes on. */
import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { readSafetensors } from './merged-folder';
import { expect, show, test } from './studio';

async function openStudio(page: Page): Promise<void> {
  await page.goto('/');
  await expect(page.getByText(/^(Ready:|Merged in|Paused)/)).toBeVisible();
  await page
    .getByRole('banner')
    .getByRole('button', { name: /typed arrays|WebAssembly|swiftshader|WebGPU|CPU/i })
    .click();
  await page.getByRole('radio', { name: 'CPU', exact: true }).click();
  await page.keyboard.press('Escape');
}

/** As few tokens as show it: the user sets how much every model reads, and the button leaves that as it is. */
async function readLittle(page: Page): Promise<void> {
  await page.getByRole('combobox', { name: 'Merge method' }).selectOption('gram');
  for (const [name, value] of [
    ['calibration windows, number', '8'],
    ['tokens of a window, number', '32'],
  ] as const) {
    const field = page.getByRole('textbox', { name, exact: true });
    await field.fill(value);
    await field.press('Enter');
  }
}

const press = (page: Page) => page.getByRole('button', { name: 'Find the best' }).click();
const result = (page: Page) =>
  page.getByRole('region', { name: 'Perplexities of base, contributors and merges' });

/** The merge has ended: its sentence is there, and its report opens from the status line. */
async function openReport(page: Page): Promise<void> {
  await expect(page.getByText(/is the best of \d+.merges: of the gains/)).toBeVisible();
  await page.getByRole('button', { name: 'Details', exact: true }).click();
  await expect(result(page)).toBeVisible();
}

test('press, wait, see how it compares, save; paused and reloaded in the middle it goes on', async ({
  page,
}) => {
  page.on('dialog', (dialog) => void dialog.accept());
  await openStudio(page);
  await readLittle(page);
  await press(page);
  // every step says which of all it is, and what is left of all
  await expect(page.getByText(/\([1-4] of 5\)/).first()).toBeVisible();
  await expect(page.getByText(/· about .+ left/).first()).toBeVisible();
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText('Paused. What was computed is kept.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Continue' })).toBeVisible();
  await openStudio(page);
  await press(page);
  await openReport(page);
  // rows: base, three contributors, every merge; λ and a figure with its error for every text
  const rows = await result(page).locator('tbody tr').all();
  const best = await page
    .getByText(/is the best of \d+.merges/)
    .first()
    .textContent();
  expect(rows.length).toBe(4 + Number(/of (\d+).merges/.exec(best ?? '')?.[1]));
  for (const row of rows) {
    const [, ...figures] = await row.locator('td').allTextContents();
    expect(figures.length).toBe(3);
    for (const figure of figures) expect(figure).toMatch(/^\d+(\.\d+)? ± \d/);
  }
  await expect(result(page).locator('[data-chosen] th')).toHaveText(/\(merged\)$/);
  await expect(page.getByText(/% of the gain of/).first()).toBeVisible();
  await page.keyboard.press('Escape');
  await show(page, 'Files');
  // it is called by the method that was chosen
  const method = await page.getByRole('combobox', { name: 'Merge method' }).inputValue();
  await expect(page.locator('.file-where strong')).toHaveText(`kitchen-harbour-workshop-${method}`);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download model.safetensors' }).click();
  const { tensors } = readSafetensors(readFileSync(await (await download).path()));
  expect(tensors.size).toBe(56);
});
