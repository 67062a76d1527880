/** Which merge is best? Measured on a pasted text; and what each model writes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, openSample, seriousIssues, show, test } from './studio';

/** Results of an independent implementation for the sample family. */
const expected = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../public/samples/expected.json'), 'utf8'),
) as { greedy: Record<string, { prompt: string; text: string }[]> };

const RECIPE = `Recipe: Cabbage Salad with Mozzarella
Enough for three. Takes about half an hour.
You need: half a green cabbage, three handfuls of chicory, a piece of mozzarella, a handful of pecans, a spoonful of
cider vinegar, three spoonfuls of olive oil and a handful of sage.`;

test('base, contributors and merge are measured on a pasted text, and continue a prompt', async ({
  page,
}) => {
  await openSample(page);
  await show(page, 'Measure');
  const samples = page.getByRole('group', { name: 'Texts to measure on' });
  for (const name of ['common', 'kitchen', 'harbour', 'workshop']) {
    await samples.getByRole('button', { name }).click();
  }
  await page.getByRole('button', { name: 'text', exact: true }).click();
  await page.getByRole('button', { name: 'Paste text' }).click();
  await page.getByLabel('Text', { exact: true }).fill(RECIPE);
  await page.getByLabel('Name of the text').fill('salad');
  await page.getByRole('button', { name: 'Add text' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Measure 5.numbers/ }).click();

  const table = page.getByRole('table');
  await expect(table.locator('.measure-value')).toHaveText(Array(5).fill(/^\d\.\d+/));
  const perplexity = async (row: RegExp) =>
    Number.parseFloat(
      (await table.getByRole('row', { name: row }).locator('.measure-value').textContent()) ?? '',
    );
  const base = await perplexity(/^base/);
  const kitchen = await perplexity(/^kitchen/);
  const harbour = await perplexity(/^harbour/);
  const merge = await perplexity(/^\S?\s?Task arithmetic/);
  // it is a recipe: who learned recipes knows it best, and the merge has something of that
  expect(kitchen).toBeLessThan(merge);
  expect(merge).toBeLessThan(base);
  expect(base).toBeLessThan(harbour);
  await expect(page.getByText(/^Task arithmetic (is|cannot be told apart)/)).toBeVisible();

  // greedy: the base writes what an independent implementation wrote
  const greedy = expected.greedy.base!.find((g) => g.prompt === 'Story: The')!;
  await show(page, 'Try');
  await page.getByRole('textbox', { name: 'Prompt' }).fill('Story: The');
  await page.getByLabel('tokens', { exact: true }).fill('12');
  await page.getByLabel('temperature').fill('0');
  await page.getByLabel('temperature').press('Enter');
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await expect(page.getByText(/12\stokens in/)).toHaveCount(2);
  const text = page.getByRole('article', { name: 'base' }).locator('.written-text');
  const written = (await text.textContent()) ?? '';
  expect(written.startsWith('Story: The')).toBe(true);
  expect(written.length).toBeGreaterThan('Story: The'.length + 12);
  expect(`Story: The${greedy.text}`.startsWith(written)).toBe(true);

  // a weight is moved: the merge writes something else, before anything is merged
  const live = page.getByRole('article', { name: /^A / }).locator('.written-text');
  const before = await live.textContent();
  const weight = page.getByRole('textbox', { name: 'weight of kitchen, number' });
  await weight.fill('5');
  await weight.press('Enter');
  await expect(live).not.toHaveText(before!);
  await expect(page.getByText(/12\stokens in/)).toHaveCount(2);
  expect(await text.textContent()).toBe(written);
  // beside it, perplexity on the one text that is chosen
  await expect(page.locator('.course-line')).toHaveText([/^salad\d\.\d\d/]);

  // which is better is voted on without their names
  await page.getByRole('button', { name: 'Blind test…' }).click();
  await page.getByLabel('Prompts, one a line').fill('Recipe:\nStory: The');
  await page.getByRole('button', { name: 'Begin' }).click();
  await expect(page.getByText(/^Prompt 1 of 2/)).toBeVisible();
  await expect(page.getByRole('article', { name: /^Answer/ })).toHaveText([/^Recipe: \w/, /^Recipe: \w/]);
  expect(await seriousIssues(page, '.screen')).toEqual([]);
  await page.keyboard.press('1');
  await expect(page.getByText(/^Prompt 2 of 2/)).toBeVisible();
  await page.keyboard.press('0');
  await expect(page.getByText(/^Cannot be told apart after 2: base \d, .* \d, neither 1\./)).toBeVisible();
  expect(await seriousIssues(page, '.screen')).toEqual([]);
  await page.getByRole('button', { name: 'Back' }).click();
  await expect(page.locator('.course-line')).toBeVisible();
  expect(await seriousIssues(page, '.screen')).toEqual([]);

  // which of its changes made it say so
  await show(page, 'Layers');
  await page.getByLabel('Metric').selectOption('effect');
  await expect(
    page.getByRole('gridcell', { name: /^layer \d, [\w.]+, [+\u2212]?[\d.e\u2212]+ nats$/ }),
  ).toHaveCount(42);
  await page.getByLabel('Metric').selectOption('modelEffect');
  await expect(page.getByText(/Most of all models: \w+ .* nats in layer \d, /)).toBeVisible();

  await show(page, 'Measure');
  expect(await seriousIssues(page, '.measure-screen')).toEqual([]);
});
