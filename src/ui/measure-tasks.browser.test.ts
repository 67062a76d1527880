import { afterEach, expect, test } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { button, column, measureButton, open, row, text } from './measure.test.support';
import { closeStudio, idle, openStudio, show, waitFor } from './open-studio.test.support';
import type { StudioWorker } from './state/studio';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';
import { holding } from './worker-running.test.fixture';

afterEach(closeStudio);

const task = (name: string) =>
  page.getByRole('dialog', { name: 'Tasks' }).getByRole('button', { name, exact: true });

/** Only the sample's task is measured. */
async function openTask(options: FixtureOptions = {}, change: Partial<StudioWorker> = {}) {
  const studio = await open(options, change);
  for (const name of ['common', 'kitchen', 'harbour', 'workshop']) await text(name).click();
  await button('task').click();
  await task('Sample trades').click();
  return studio;
}

test('a task is a column: accuracy with its error, and the sentence by its paired error', async () => {
  const studio = await openTask();
  await page.getByLabelText('items per task').fill('30');
  await userEvent.keyboard('{Enter}');
  await userEvent.keyboard('{Escape}');
  await column('sample_trades').getByRole('button').click();
  await measureButton().click();
  await idle(studio);
  // wrong at every second item, at every third; the merge at every sixth
  await expect
    .element(
      row('base')
        .getByRole('cell')
        .nth(0)
        .getByText(/^50\.0/),
    )
    .toBeVisible();
  await expect
    .element(
      row('kitchen')
        .getByRole('cell')
        .nth(0)
        .getByText(/^66\.7/),
    )
    .toBeVisible();
  await expect.element(page.getByText(/better than the base by .*points.* on 30\sitems/)).toBeVisible();
  // in the strip of runs, and again on a later visit
  await show('Layers');
  const strip = page.getByRole('region', { name: 'Runs' });
  await expect.element(strip.getByText(/sample_trades acc 0\.833 ± 0\.069/)).toBeVisible();
  await openStudio();
  await expect.element(strip.getByText(/sample_trades acc 0\.833 ± 0\.069/)).toBeVisible();
});

test('stopping keeps the items that are done; a task is chosen by its subset', async () => {
  const asked: unknown[] = [];
  const held = fixtureWorker({ hold: holding(3) });
  const studio = await openTask(
    {},
    {
      scoreTasks: (request, tell) => {
        asked.push(request.tasks);
        return held.scoreTasks(request, tell);
      },
      cancel: () => held.cancel(),
    },
  );
  await task('Sample trades').click();
  await task('MMLU').click();
  await page.getByLabelText('MMLU subset').selectOptions('virology');
  await userEvent.keyboard('{Escape}');
  await measureButton().click();
  const done = () => {
    const [cell] = [...studio.store.getState().measure.cells.values()];
    return cell && 'blocks' in cell ? cell.blocks.length : 0;
  };
  await waitFor(() => expect(done()).toBe(3));
  await button('Stop').click();
  await idle(studio);
  expect(done()).toBe(3);
  expect(asked).toEqual([[{ name: 'mmlu_virology' }]]);
  // they count until the whole is measured, which is still offered
  await expect.element(measureButton()).toHaveAccessibleName(/5\snumbers/);
});
