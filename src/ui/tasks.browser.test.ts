import { afterEach, expect, test } from 'vitest';
import { page } from 'vitest/browser';
import { AmalgamError } from '../errors';
import { closeStudio, idle, openStudio, show } from './open-studio.test.support';
import type { StudioWorker } from './state/studio';
import { waitFor } from './wait-for.test.support';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';

afterEach(closeStudio);

async function open(options: FixtureOptions = {}, change: Partial<StudioWorker> = {}) {
  const { studio } = await openStudio(options, change);
  await show('Measure');
  await expect.element(task('Sample trades')).toBeVisible();
  return studio;
}

const task = (name: string) =>
  page.getByRole('group', { name: 'Tasks to score' }).getByRole('button', { name, exact: true });
const score = () => page.getByRole('button', { name: /^Score \d/ });
const cells = (row: string) =>
  page
    .getByRole('table', { name: /^sample_trades/ })
    .getByRole('row', { name: new RegExp(`^${row}`) })
    .getByRole('cell');

test('the time is predicted before; a score has its error, and a test against the first model', async () => {
  const studio = await open();
  await page.getByRole('button', { name: 'How long?' }).click();
  await expect.element(page.getByText(/^Predicted by the first items of the first model/)).toBeVisible();
  await page.getByLabelText('items per task').fill('30');
  await page.getByLabelText('few-shot examples').click();
  expect(page.getByText(/^Predicted by/).query()).toBeNull();
  await score().click();
  await idle(studio);
  // wrong at every second item, and at every third
  await expect.element(cells('base').nth(0)).toHaveTextContent('0.500 ± 0.093');
  await expect.element(cells('kitchen').nth(0)).toHaveTextContent('0.667 ± 0.088');
  await expect.element(cells('kitchen').nth(2)).toHaveTextContent('30');
  // 10 gained, 5 lost of 30: 2 Σ_{i ≤ 5} C(15, i) / 2¹⁵
  await expect
    .element(cells('kitchen').nth(3))
    .toHaveTextContent('no significant difference: 10 gained, 5 lost, p = 0.30');
});

test('a scoring whose time is not known is predicted first; one that takes long begins when it is asked for again', async () => {
  const asked: (boolean | undefined)[] = [];
  const slow = fixtureWorker();
  const studio = await open(
    {},
    {
      scoreTasks: async (request, tell) => {
        asked.push(request.trial);
        const report = await slow.scoreTasks(request, tell);
        // 600 tokens of the trial at a token a second
        return { ...report, models: report.models.map((model) => ({ ...model, seconds: model.tokens })) };
      },
    },
  );
  await score().click();
  await expect.element(page.getByText(/^Predicted by the first items.* Score begins it\.$/)).toBeVisible();
  expect(asked).toEqual([true]);
  await score().click();
  await waitFor(() => expect(studio.store.getState().tasks.run?.models).toBeTruthy());
  expect(asked).toEqual([true, undefined]);
});

test('what was scored stands in the strip of runs and comes back on a later visit', async () => {
  const studio = await open();
  await page.getByLabelText('Which items').selectOptions('drawn');
  await page.getByRole('region', { name: 'Tasks' }).getByLabelText('seed').fill('7');
  await page.getByLabelText('items per task').fill('30');
  await score().click();
  await waitFor(() => expect(studio.store.getState().tasks.scores.size).toBe(5));
  await expect.element(page.getByText(/30 of 48\sitems, drawn by seed 7/)).toBeVisible();
  await show('Layers');
  const strip = page.getByRole('region', { name: 'Runs' });
  // the merge is the fifth: wrong at every sixth item
  await expect.element(strip.getByText(/sample_trades acc 0\.833 ± 0\.069/)).toBeVisible();

  const later = await open();
  await show('Layers');
  await expect.element(strip.getByText(/sample_trades acc 0\.833 ± 0\.069/)).toBeVisible();
  await show('Measure');
  await expect.element(cells('base').nth(0)).toHaveTextContent('0.500 ± 0.093');
  await page.getByRole('button', { name: 'Forget it' }).click();
  await waitFor(() => expect(later.store.getState().tasks.scores.size).toBe(0));
});

test('stopping keeps the items that are done; a task is chosen by its subset', async () => {
  const asked: unknown[] = [];
  const studio = await open(
    { runPace: 20 },
    {
      scoreTasks: (request, tell) => {
        if (!request.trial) asked.push(request.tasks);
        return fixtureWorkerOf.scoreTasks(request, tell);
      },
      cancel: () => fixtureWorkerOf.cancel(),
    },
  );
  await task('Sample trades').click();
  await expect.element(score()).toHaveAttribute('aria-disabled', 'true');
  await task('MMLU').click();
  await page.getByLabelText('MMLU subset').selectOptions('virology');
  await score().click();
  const done = () => studio.store.getState().tasks.run?.items[0]?.[0]?.length ?? 0;
  await waitFor(() => expect(done()).toBeGreaterThan(2));
  await page.getByRole('button', { name: 'Stop scoring' }).click();
  await idle(studio);
  expect(done()).toBeLessThan(48);
  expect(asked).toEqual([[{ name: 'mmlu_virology' }]]);
  await expect.element(page.getByRole('table', { name: /^mmlu_virology/ })).toBeVisible();
});

const fixtureWorkerOf = fixtureWorker({ runPace: 20 });

test('what is wrong with a task is said where it was asked for', async () => {
  const scoreTasks = async () => {
    throw new AmalgamError('ColumnMissing', 'The split has no column “goal”.', 'Its columns are “a”.');
  };
  await open({}, { scoreTasks });
  await score().click();
  await expect.element(page.getByText('The split has no column “goal”.')).toBeVisible();
});
