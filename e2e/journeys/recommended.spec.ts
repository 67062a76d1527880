/** *Find the best* in the run bar: one press tries merges, the best becomes the recipe, and Merge writes it. */
import { expect, openSample, test } from './studio';

test('press, wait, the best is the recipe; merge it; undo brings the recipe back', async ({ page }) => {
  await openSample(page);
  // every merge is tried on every model's text: two are enough
  await page.getByRole('button', { name: 'Remove workshop' }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  const method = page.getByRole('combobox', { name: 'Merge method' });
  const before = await method.inputValue();
  await page.locator('.runbar').getByRole('button', { name: 'Find the best' }).click();
  await expect(page.getByRole('progressbar', { name: 'Measuring' })).toBeVisible();
  await expect(page.getByText(/^The recipe is now /)).toBeVisible();
  // how many merges fit into the time, and what can be told of them, is the machine's
  await expect(page.locator('.measure-lead')).toHaveText(
    /(is the best of|was chosen among|None of) \d+ merges|(better|worse) than|cannot be told apart|the only merge/,
  );
  // it is one row, with the numbers that it was chosen by
  const row = page.getByRole('row').filter({ hasText: 'this recipe' });
  await expect(row.locator('.measure-value').first()).toBeVisible();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/^Merged in /)).toBeVisible();
  await expect(page.getByRole('region', { name: 'Result of the merge' })).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(method).toHaveValue(before);
});
