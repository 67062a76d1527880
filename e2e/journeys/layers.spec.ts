/** Runs side by side: predicted, merged, and in a link that somebody else opens. */
import type { Page } from '@playwright/test';
import { STUDIO_URL } from './addresses';
import { chooseMethod, expect, freshPage, isOpen, seriousIssues, show, test, unfold } from './studio';

const CELL = /layer 3, mlp\.down_proj/;

/** Labels of one cell in every column: A, B, B − A. */
async function words(page: Page): Promise<string[]> {
  const cells = page.getByRole('gridcell', { name: CELL });
  const said = await cells.evaluateAll((all) => all.map((cell) => cell.getAttribute('aria-label') ?? ''));
  return said.map((text) => text.replace(/\s/g, ' '));
}

async function open(page: Page, address = '/'): Promise<void> {
  await page.goto(address);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  // the changes of the sample were measured
  await expect(page.getByRole('gridcell', { name: /about .* within/ }).first()).toBeVisible();
}

/** Share of the linear weights at the base, by the label of a column. */
function percent(text: string | undefined): number {
  return Number(/([\d.]+) % at the base/.exec(text ?? '')?.[1]);
}

test('two methods are compared without merging; then both are merged and counted', async ({ page }) => {
  await open(page);
  await chooseMethod(page, 'ties');
  await page.getByLabel('Add a run').selectOption('dare_linear');
  await page.getByLabel('Metric').selectOption('mergedSparsity');
  await expect(page.getByRole('gridcell', { name: CELL })).toHaveCount(3);
  const predicted = await words(page);
  for (const text of predicted.slice(0, 2)) expect(text).toMatch(/about [\d.]+ % at the base, within/);
  expect(predicted[2]).toMatch(/pp against A/);
  // nothing was written for it
  await expect(page.getByText(/^Merged in/)).toHaveCount(0);

  await page.getByRole('button', { name: 'Merge all 2 shown' }).click();
  // each shows its time of merging once it is saved
  await expect(page.getByRole('button', { name: /^A TIES.* recipe · merged/ })).toBeVisible();
  await expect(page.getByRole('button', { name: /^B DARE.*\d:\d\d/ })).toBeVisible();
  await expect(page.getByRole('gridcell', { name: /about/ })).toHaveCount(0);
  const counted = await words(page);
  // the prediction held within its error
  for (const [i, text] of counted.slice(0, 2).entries()) {
    const error = Number(/within ([\d.]+) %/.exec(predicted[i]!)?.[1]);
    expect(Math.abs(percent(text) - percent(predicted[i]))).toBeLessThanOrEqual(error + 0.05);
  }
  // both are there after a reload
  await page.reload();
  await isOpen(page);
  await expect(page.getByRole('gridcell', { name: CELL })).toHaveCount(3);
  await expect.poll(() => words(page)).toEqual(counted);
});

test('a link opens the same view in a browser that knows nothing; Back goes to the view before', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await open(page);
  await chooseMethod(page, 'ties');
  await page.getByLabel('Add a run').selectOption('ties');
  await unfold(page, 'kitchen');
  await page.getByLabel('density of kitchen, number').fill('0.5');
  await page.keyboard.press('Enter');
  await page
    .getByRole('button', { name: /^Actions of/ })
    .first()
    .click();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  await page.getByRole('textbox', { name: /^Name of/ }).fill('the first');
  await page.keyboard.press('Enter');
  await page.getByLabel('Metric').selectOption('lostInVote');
  await page.getByLabel('Of which model').selectOption('samples/workshop');
  await page.getByRole('gridcell', { name: CELL }).first().click();
  await expect(page.getByRole('complementary', { name: 'Inspector' })).toContainText(
    'layers.3.mlp.down_proj',
  );
  const before = await words(page);
  expect(before).toHaveLength(3);
  await page.getByRole('button', { name: 'Share' }).click();
  await expect(page.getByText('The link is copied.')).toBeVisible();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(link.startsWith(STUDIO_URL)).toBe(true);

  const theirs = await freshPage(context);
  await open(theirs, link);
  await expect(theirs.getByRole('gridcell', { name: CELL })).toHaveCount(3);
  await expect.poll(() => words(theirs)).toEqual(before);
  await expect(theirs.getByRole('button', { name: /the first/ }).first()).toBeVisible();
  await expect(theirs.getByRole('complementary', { name: 'Inspector' })).toContainText(
    'layers.3.mlp.down_proj',
  );
  await unfold(theirs, 'kitchen');
  expect(await theirs.getByLabel('density of kitchen, number').inputValue()).toBe('0.50');
  await theirs.getByLabel('Metric').selectOption('keptEnergy');
  await show(theirs, 'Files');
  await theirs.goBack();
  await expect(theirs.getByLabel('Metric')).toHaveValue('keptEnergy');
  await theirs.goBack();
  await expect(theirs.getByLabel('Metric')).toHaveValue('lostInVote');
  await expect.poll(() => words(theirs)).toEqual(before);
  expect(await seriousIssues(theirs, '.workbench')).toEqual([]);
});
