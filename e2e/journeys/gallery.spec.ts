/** Examples in the studio: one click opens each, all plan, one of several stages is merged; texts are told their mistakes. */
import AxeBuilder from '@axe-core/playwright';
import { expect, test } from './studio';

test('every example opens with one click and plans without errors', async ({ page }) => {
  test.setTimeout(180_000);
  await page.goto('/');
  await page.getByRole('tab', { name: /^Plan/ }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible({ timeout: 60_000 });
  const open = async () => {
    await page.getByRole('button', { name: 'Examples' }).click();
    const examples = page.getByRole('dialog').getByRole('listitem').getByRole('button');
    await expect(examples.first()).toBeVisible();
    return examples;
  };
  const count = await (await open()).count();
  expect(count).toBeGreaterThanOrEqual(26);
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.filter((v) => v.impact === 'serious' || v.impact === 'critical')).toEqual([]);
  await page.keyboard.press('Escape');
  for (let i = 0; i < count; i++) {
    const examples = await open();
    const title = (await examples.nth(i).locator('strong').textContent()) ?? '';
    await examples.nth(i).click();
    await expect(page.getByRole('dialog')).toBeHidden();
    await expect(page.getByText(/^Ready: /), title).toBeVisible();
  }
});

test('a recipe of two stages merges, and leaves only its result', async ({ page }) => {
  await page.goto('/');
  await page.getByRole('tab', { name: /^Plan/ }).click();
  await expect(page.getByText(/^Ready:/)).toBeVisible({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Examples' }).click();
  await page.getByRole('button', { name: /^In two stages/ }).click();
  await expect(page.getByText(/1\sstage before the result: adapters \(56\stensors/)).toBeVisible();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect(page.getByText(/^Merged in/)).toBeVisible({ timeout: 60_000 });
  const outputs = await page.evaluate(async () => {
    const names: string[] = [];
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('outputs');
    for await (const name of root.keys()) names.push(name);
    return names;
  });
  expect(outputs).toEqual(['kitchen-harbour-workshop-slerp']);
});

test('a text is told its mistakes with their lines, and what mergekit does otherwise', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByText(/^Ready:/)).toBeVisible({ timeout: 60_000 });
  await page.getByRole('button', { name: 'YAML', exact: true }).click();
  const text = page.getByRole('textbox', { name: 'Recipe as YAML' });
  const yaml = await text.inputValue();
  expect(yaml).toContain('merge_method: ties');
  await text.fill(`${yaml}lambada: 1\n`);
  await expect(page.getByText(/Line \d+, column 1: lambada is not a known setting/)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Use this recipe' })).toBeDisabled();
  await text.fill(`${yaml}amalgam:\n  exclude: ["*.mlp.*"]\n`);
  await page.getByRole('button', { name: 'Use this recipe' }).click();
  await page.getByRole('tab', { name: /^Plan/ }).click();
  await expect(page.getByText(/18 of 56 tensors are left out of the merge/)).toBeVisible();
  await page.getByRole('tab', { name: 'Output' }).click();
  await expect(page.getByText('mergekit merges these tensors too.')).toBeVisible();
  await expect(page.getByRole('combobox', { name: 'Merge method' })).toHaveValue('ties');
});
