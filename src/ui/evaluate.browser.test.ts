import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import { closeStudio, idle, openStudio, show } from './open-studio.test.support';
import type { StudioWorker } from './state/studio';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';

afterEach(closeStudio);

/** Opens the studio at its Evaluate tab, with a fake worker. */
async function open(options: FixtureOptions = {}, change: Partial<StudioWorker> = {}) {
  const { studio } = await openStudio(options, change);
  await show('Measure');
  await expect.element(text('kitchen')).toBeVisible();
  return studio;
}

const text = (name: string) =>
  page.getByRole('group', { name: 'Texts to measure on' }).getByRole('button', { name, exact: true });
const measureButton = () => page.getByRole('button', { name: 'Measure', exact: true });
const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) });

test('measuring fills the table; what was measured is kept and shown dimmed after an edit', async () => {
  const evaluateMany = vi.spyOn(fixtureWorker(), 'evaluateMany');
  const studio = await open({}, { evaluateMany });
  await text('common').click();
  await text('workshop').click();
  await measureButton().click();
  await idle(studio);
  // all five models side by side on both texts
  expect(evaluateMany).toHaveBeenCalledTimes(1);
  const request = evaluateMany.mock.calls[0]?.[0];
  expect(request).toMatchObject({ window: 256, stride: 128 });
  expect(request?.targets[0]).toEqual({ model: 'samples/base' });
  expect([request?.targets.length, request?.inputs.length]).toEqual([5, 2]);
  // quick: a beginning of the text, and the column shows it
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
  // the models' numbers were saved: only the merge was measured again
  expect(evaluateMany).toHaveBeenCalledTimes(2);
  expect(evaluateMany.mock.calls[1]?.[0].targets).toHaveLength(1);
  await expect.element(page.getByText(/before your change/)).not.toBeInTheDocument();
});

test('all methods are compared, and a click takes one into the recipe', async () => {
  const studio = await open();
  for (const name of ['common', 'harbour', 'workshop']) await text(name).click();
  const evaluateMany = vi.spyOn(studio.worker, 'evaluateMany');
  await page.getByRole('button', { name: /^Benchmark \d+ methods/ }).click();
  await idle(studio);
  // a few at a time, so that rows fill; what runs every model over text first goes last, alone
  const together = evaluateMany.mock.calls.map(([{ targets }]) => targets);
  expect(Math.max(...together.map((targets) => targets.length))).toBe(8);
  expect(together.at(-1)).toMatchObject([{ recipe: { mergeMethod: 'gram' } }]);
  // all methods are on one screen of a laptop, each with a dot on the same scale
  expect(document.querySelectorAll('.perplexity .dot')).toHaveLength(together.flat().length);
  const rowHeights = [...document.querySelectorAll('.perplexity tbody tr')].map((r) => r.clientHeight);
  expect(Math.max(...rowHeights)).toBeLessThanOrEqual(32);
  const merges = [...studio.store.getState().evaluation.lastOf.keys()].filter((id) =>
    id.startsWith('method'),
  );
  expect(merges.length).toBeGreaterThan(5);
  await expect.element(page.getByText(/^(Best|None) of \d+ merges/)).toBeVisible();
  await page.getByRole('button', { name: /^Apply: Linear/ }).click();
  expect(studio.store.getState().recipe.method).toBe('linear');
  await expect.element(row('Linear').getByText('this recipe')).toBeVisible();
});

test('measuring can be stopped; the merge waits for it and says so', async () => {
  const studio = await open({ runPace: 1000 });
  await measureButton().click();
  const merge = page.getByRole('button', { name: 'Merge', exact: true });
  await expect.element(merge).toHaveAccessibleDescription('Models are being measured.');
  await page.getByRole('button', { name: 'Stop measuring' }).click();
  await idle(studio);
  expect(studio.store.getState().evaluation.outcomes.size).toBe(0);
  await expect.element(merge).not.toHaveAttribute('aria-disabled');
});

test('what was measured is there after a reload, marked, until it is forgotten', async () => {
  const first = await open();
  for (const name of ['common', 'harbour', 'workshop']) await text(name).click();
  await measureButton().click();
  await idle(first);
  await expect.element(page.getByText(/5\smodels, .* of weights read, at most/)).toBeVisible();
  const shown = () =>
    document.querySelector('.perplexity tbody')?.querySelector('.perplexity-value')?.textContent;
  const value = shown();
  expect(value).toMatch(/^\d\.\d{3}/);

  const again = await open();
  for (const name of ['common', 'harbour', 'workshop']) await text(name).click();
  await expect.element(row('base').getByText('from an earlier visit')).toBeVisible();
  expect(shown()).toBe(value);
  await expect.element(measureButton()).toHaveAttribute('aria-disabled', 'true');
  await page.getByRole('button', { name: 'Forget them' }).click();
  expect(again.store.getState().evaluation.outcomes.size).toBe(0);
  await expect.element(measureButton()).not.toHaveAttribute('aria-disabled');
  const third = await open();
  expect(third.store.getState().evaluation.outcomes.size).toBe(0);
});

test('models that were done when measuring was stopped keep their numbers', async () => {
  const evaluateMany: StudioWorker['evaluateMany'] = async (request, onProgress) => {
    const { models } = await fixtureWorker().evaluateMany(request, () => {});
    const running = { phase: 'running', done: 1, total: 2, rate: 1, secondsLeft: 1 } as const;
    onProgress({ ...running, finished: models.slice(0, 2).map((model, index) => ({ index, model })) });
    throw new AmalgamError('Canceled', 'Canceled.', 'Start again.');
  };
  const studio = await open({}, { evaluateMany });
  await measureButton().click();
  await idle(studio);
  // two models on four texts
  expect(studio.store.getState().evaluation.outcomes.size).toBe(8);
});

test('a model that cannot be run says why, once, and the others are measured', async () => {
  const error = new AmalgamError(
    'ArchitectureUnsupported',
    'Nobody knows how to run this.',
    'Merge it anyway.',
  );
  const evaluateMany = vi.spyOn(fixtureWorker({ cannotRun: { workshop: error } }), 'evaluateMany');
  const studio = await open({}, { evaluateMany });
  await measureButton().click();
  await idle(studio);
  await expect.element(page.getByText(/^workshop, TIES 0.20: Nobody knows/)).toBeVisible();
  await expect.element(page.getByText('Merge it anyway.')).toBeVisible();
  expect(evaluateMany).toHaveBeenCalledTimes(1);
  const outcomes = [...studio.store.getState().evaluation.outcomes.values()];
  // three models on four texts; neither workshop nor the merge with it
  expect(outcomes.filter((o) => 'report' in o)).toHaveLength(12);
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

test('a file of a dataset becomes a column: its files, its columns, as much as is wanted', async () => {
  const readDataset = vi.spyOn(fixtureWorker(), 'readDataset');
  await open({}, { readDataset });
  await page.getByRole('button', { name: 'Dataset', exact: true }).click();
  await page.getByLabelText('Dataset', { exact: true }).fill('owner/tales');
  await page.getByRole('button', { name: 'List files' }).click();
  await page.getByLabelText('File of the dataset').selectOptions('data/test.parquet');
  await expect.element(page.getByLabelText('Column of the file')).toHaveValue('text');
  await expect.element(page.getByText(/Commit 0123456789ab/)).toBeVisible();
  await page.getByLabelText('Column of the file').selectOptions('title');
  await page.getByLabelText('characters to take').fill('5000');
  await userEvent.keyboard('{Enter}');
  await page.getByRole('button', { name: 'Add text' }).click();
  await expect
    .element(page.getByRole('columnheader', { name: /owner\/tales: data\/test.parquet all 960 characters/ }))
    .toBeVisible();
  expect(readDataset.mock.calls[0]?.[0]).toEqual({
    ref: 'owner/tales@0123456789abcdef0123456789abcdef01234567',
    path: 'data/test.parquet',
    column: 'title',
    characters: 5000,
  });
});

test('a dataset that cannot be had says why', async () => {
  const gated = new AmalgamError('Gated', 'the dataset owner/tales is gated.', 'Accept its license.');
  await open({ hubError: gated });
  await page.getByRole('button', { name: 'Dataset', exact: true }).click();
  await page.getByLabelText('Dataset', { exact: true }).fill('owner/tales');
  await page.getByRole('button', { name: 'List files' }).click();
  await expect.element(page.getByText('Accept its license.')).toBeVisible();
});
