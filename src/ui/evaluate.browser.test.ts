import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import { type FixtureOptions, fixtureEngine } from './engine-fixture';
import { startStudio } from './start';
import type { Studio, StudioEngine } from './state/studio';

let running: { studio: Studio; stop(): void; element: HTMLElement } | undefined;

afterEach(() => {
  running?.stop();
  running?.element.remove();
  running = undefined;
  localStorage.clear();
});

/** Opens the studio at its Evaluate tab, with a pretended engine. */
async function open(options: FixtureOptions = {}, change: Partial<StudioEngine> = {}) {
  await page.viewport(1440, 900);
  const element = document.createElement('div');
  document.body.append(element);
  running = { ...startStudio({ ...fixtureEngine(options), ...change }, element), element };
  await expect.element(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('tab', { name: /^Evaluate/ }).click();
  await expect.element(text('kitchen')).toBeVisible();
  return running.studio;
}

const text = (name: string) =>
  page.getByRole('group', { name: 'Texts to measure on' }).getByRole('button', { name, exact: true });
const measureButton = () => page.getByRole('button', { name: 'Measure', exact: true });
const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) });
const idle = (studio: Studio) =>
  vi.waitFor(() => expect(studio.store.getState().evaluation.job).toBeNull(), { timeout: 45_000 });

test('measuring fills the table cell by cell; what was measured is kept and shown dimmed after an edit', async () => {
  const evaluate = vi.spyOn(fixtureEngine(), 'evaluate');
  const studio = await open({}, { evaluate });
  await text('common').click();
  await text('workshop').click();
  await measureButton().click();
  await idle(studio);
  expect(evaluate).toHaveBeenCalledTimes(10);
  // quick: a beginning of the text, and the column says so
  expect(evaluate.mock.calls[0]?.[0]).toMatchObject({
    target: { model: 'samples/base' },
    window: 256,
    stride: 128,
  });
  await expect
    .element(page.getByRole('columnheader', { name: /kitchen.*first.*of.*characters/ }))
    .toBeVisible();
  await expect.element(row('kitchen').getByText('best').first()).toBeVisible();
  await expect.element(measureButton()).toHaveAttribute('aria-disabled', 'true');
  await expect.element(page.getByText(/start token 0/)).toBeVisible();

  await page.getByLabelText('density of kitchen, number').fill('0.5');
  await userEvent.keyboard('{Enter}');
  await expect.element(page.getByText('before your change: TIES 0.20')).toBeVisible();
  await measureButton().click();
  await idle(studio);
  // the models' numbers were kept: only the merge was measured again
  expect(evaluate).toHaveBeenCalledTimes(12);
  await expect.element(page.getByText(/before your change/)).not.toBeInTheDocument();
});

test('all methods are compared, and a click takes one into the recipe', async () => {
  const studio = await open();
  for (const name of ['common', 'harbour', 'workshop']) await text(name).click();
  await page.getByRole('button', { name: /^Compare all \d+ methods/ }).click();
  await idle(studio);
  const merges = [...studio.store.getState().evaluation.lastOf.keys()].filter((id) =>
    id.startsWith('method'),
  );
  expect(merges.length).toBeGreaterThan(5);
  await expect.element(page.getByText(/^Best of \d+ merges/)).toBeVisible();
  await page.getByRole('button', { name: /^Take into the recipe: Linear/ }).click();
  expect(studio.store.getState().recipe.method).toBe('linear');
  await expect.element(row('Linear').getByText('this recipe')).toBeVisible();
});

test('measuring can be stopped; the merge waits for it and says so', async () => {
  const studio = await open({ runPace: 60 });
  await measureButton().click();
  const merge = page.getByRole('button', { name: 'Merge', exact: true });
  await expect.element(merge).toHaveAccessibleDescription('Models are being measured.');
  await vi.waitFor(() => expect(studio.store.getState().evaluation.outcomes.size).toBe(1));
  await page.getByRole('button', { name: 'Stop measuring' }).click();
  await idle(studio);
  // a click takes its time on a busy machine: fewer than half of the cells is stopped early enough
  expect(studio.store.getState().evaluation.outcomes.size).toBeLessThan(10);
  await expect.element(merge).not.toHaveAttribute('aria-disabled');
});

test('a model that cannot be run says why, once, and the others are measured', async () => {
  const error = new AmalgamError(
    'ArchitectureUnsupported',
    'Nobody knows how to run this.',
    'Merge it anyway.',
  );
  const evaluate = vi.spyOn(fixtureEngine({ cannotRun: { workshop: error } }), 'evaluate');
  const studio = await open({}, { evaluate });
  await measureButton().click();
  await idle(studio);
  await expect.element(page.getByText(/^workshop, TIES 0.20: Nobody knows/)).toBeVisible();
  await expect.element(page.getByText('Merge it anyway.')).toBeVisible();
  // three models on four texts; workshop and the merge are given up after one
  expect(evaluate).toHaveBeenCalledTimes(14);
});

test('a pasted text becomes a column; windows that leave tokens out are refused', async () => {
  await open();
  await page.getByRole('button', { name: 'Paste text' }).click();
  await page.getByLabelText('Text', { exact: true }).fill('The tide turns at noon.');
  await page.getByLabelText('Name of the text').fill('tides');
  await page.getByRole('button', { name: 'Add text' }).click();
  await expect.element(page.getByRole('columnheader', { name: /tides all 23 characters/ })).toBeVisible();
  await page.getByLabelText('stride in tokens').fill('300');
  await userEvent.keyboard('{Enter}');
  await expect.element(measureButton()).toHaveAccessibleDescription(/stride at least 1/);
});

test('base, contributors and merge write side by side, on a phone below each other', async () => {
  const studio = await open();
  await page.getByLabelText('tokens', { exact: true }).fill('5');
  await userEvent.keyboard('{Enter}');
  await page.getByRole('button', { name: 'Write', exact: true }).click();
  await vi.waitFor(() => expect(studio.store.getState().generation.status).toBe('idle'));
  const columns = [...document.querySelectorAll<HTMLElement>('.written-column')];
  expect(columns.map((c) => c.ariaLabel)).toEqual([
    'base',
    'kitchen',
    'harbour',
    'workshop',
    'merge, TIES 0.20',
  ]);
  for (const column of columns) {
    expect(column.querySelector('.written-text')?.textContent).toMatch(/^Recipe:( \w+){5}$/);
    expect(column.textContent).toMatch(/5 tokens in .*, stopped at the limit/);
  }
  await page.viewport(390, 844);
  await vi.waitFor(() => expect(new Set(columns.map((c) => c.getBoundingClientRect().left)).size).toBe(1));
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(390);
});
