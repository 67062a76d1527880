import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import { button, column, measureButton, open, row, text } from './measure.test.support';
import { closeStudio, idle, openStudio, waitFor } from './open-studio.test.support';
import type { StudioWorker } from './state/studio';
import { fixtureWorker } from './worker.test.fixture';
import { holding } from './worker-running.test.fixture';

afterEach(closeStudio);

const findButton = () =>
  page.getByRole('region', { name: 'Table of measurements' }).getByRole('button', { name: 'Find the best' });
const front = () => page.getByRole('img', { name: /^The front between common and kitchen: / });

test('measuring fills the table, every number with its error; after an edit only the merge is missing', async () => {
  const studio = await open();
  const evaluateMany = vi.spyOn(studio.worker, 'evaluateMany');
  await text('common').click();
  await text('workshop').click();
  await expect.element(column('common')).not.toBeInTheDocument();
  await expect.element(measureButton()).toHaveAccessibleName(/10\snumbers/);
  await measureButton().click();
  await idle(studio);
  // base first, then more and more side by side; every stretch of both texts an input
  const together = evaluateMany.mock.calls.map(([{ targets }]) => targets.length);
  expect(together).toEqual([1, 2, 1, 1]);
  expect(evaluateMany.mock.calls[0]![0].targets[0]).toEqual({ model: 'samples/base' });
  const stretches = evaluateMany.mock.calls[0]![0].inputs.map((of) => ('text' in of ? of.text.length : 0));
  expect(stretches.length).toBeGreaterThan(4);
  expect(Math.max(...stretches)).toBeLessThan(300);
  await expect
    .element(
      row('base')
        .getByRole('cell')
        .nth(1)
        .getByText(/^\d\.\d{2,} ±\d\.\d{2,}$/),
    )
    .toBeVisible();
  await expect.element(page.getByText(/on 2.×.1.?[34]\d\d.characters/)).toBeVisible();
  await expect.element(measureButton()).toHaveAccessibleDescription(/Every number/);
  // one dot for each row, on one scale
  expect(document.querySelectorAll('.measure-table .dot')).toHaveLength(5);
  expect(document.querySelectorAll('.dot-ticks > span').length).toBeGreaterThan(1);

  await page.getByLabelText('λ, number').first().fill('0.5');
  await userEvent.keyboard('{Enter}');
  await expect.element(measureButton()).toHaveAccessibleName(/2\snumbers, about/);
  await measureButton().click();
  await idle(studio);
  expect(evaluateMany.mock.calls.at(-1)![0].targets).toHaveLength(1);
});

test('what was tried comes row by row, the best first; one is used; whole texts are other numbers', async () => {
  const studio = await open();
  await findButton().click();
  await idle(studio);
  const { rows } = studio.store.getState().measure.found!;
  const merges = rows.filter(({ target }) => 'recipe' in target);
  expect(merges.length).toBeGreaterThan(8);
  await expect
    .element(page.getByText(/^(\S+ (is the best of|was chosen among)|None of) \d+ merges/))
    .toBeVisible();
  await button(/^\d+ more$/).click();
  // four texts have no front, two have
  await expect.element(front()).not.toBeInTheDocument();
  for (const name of ['harbour', 'workshop']) await text(name).click();
  await expect.element(front()).toBeVisible();
  const tagged = [...document.querySelectorAll('.measure-table tr')].filter((tr) =>
    /front/.test(tr.textContent!),
  );
  expect(front().element().querySelectorAll('.plot-point')).toHaveLength(tagged.length);
  for (const name of ['harbour', 'workshop']) await text(name).click();
  const meansOf = () =>
    [...document.querySelectorAll('.measure-table tbody:nth-of-type(2) tr')].flatMap((tr) => {
      const cell = tr.querySelectorAll('td')[1];
      // a faint one is a difference from the leader
      const found = /^([+−]?\d+\.\d+)(?=%?( |$))/.exec(cell?.textContent ?? '');
      return found
        ? [
            {
              mean: Number(found[1]!.replace('−', '-')),
              isFaint: cell!.querySelector('[data-faint]') !== null,
            },
          ]
        : [];
    });
  const isSorted = (of: { mean: number }[]) => of.every(({ mean }, i) => i === 0 || of[i - 1]!.mean <= mean);
  // those compared on the choosing part alone come last, and are measured by a press
  const means = meansOf();
  expect(means.length).toBeGreaterThan(8);
  const first = means.findIndex(({ isFaint }) => isFaint);
  expect(first).toBeGreaterThan(3);
  expect(means.slice(first).every(({ isFaint }) => isFaint)).toBe(true);
  expect(isSorted(means.slice(0, first)) && isSorted(means.slice(first))).toBe(true);
  await expect.element(page.getByText(/\d more were compared on the choosing part alone/)).toBeVisible();
  const faint = /Faint: the difference from .* on the part that merges are chosen on\./;
  await expect.element(page.getByText(faint)).toBeVisible();
  for (const one of document.querySelectorAll('[data-faint]'))
    expect(one.textContent).toMatch(/^([+−]\d|0\.0%).*/);
  await button(/^measure \d+.missing numbers/).click();
  await idle(studio);
  expect(meansOf()).toHaveLength(means.length);
  expect(meansOf().some(({ isFaint }) => isFaint)).toBe(false);
  expect(isSorted(meansOf())).toBe(true);
  await button('Use linear').click();
  expect(studio.store.getState().recipe.method).toBe('linear');
  // with its own settings it is the recipe now, and no row beside it
  await expect.element(row('Linear').getByText('this recipe')).toBeVisible();
  await expect.element(button('Use linear')).not.toBeInTheDocument();

  await button(/^the first 4.500 characters$/).click();
  expect(studio.store.getState().measure.amount).toBe('full');
  await expect.element(measureButton()).toHaveAccessibleName(/20\snumbers/);
  // with those that cannot be told apart go the models that they are judged by
  await button('full texts').click();
  await button(/^Measure these on full texts, about/).click();
  await idle(studio);
  expect(studio.store.getState().measure.amount).toBe('full');
  const models = document.querySelectorAll('.measure-table tbody:nth-of-type(3) tr:not(.measure-group)');
  for (const model of models) expect(model.querySelectorAll('.measure-value')).toHaveLength(5);
});

test('in the run bar one press tries merges and makes the best the recipe; stopped, the recipe stays', async () => {
  const { studio } = await openStudio();
  const find = () => page.elementLocator(document.querySelector('.runbar')!).getByText('Find the best');
  const before = studio.store.getState().recipe;
  await find().click();
  await waitFor(() => expect(studio.store.getState().measure.found?.report).toBeTruthy());
  const report = studio.store.getState().measure.found!.report!;
  const best = report.rows.find(({ id }) => id === report.best)!;
  await expect.element(page.getByText(`The recipe is now ${best.label}.`)).toBeVisible();
  // how good it is says the heading alone
  await expect
    .element(page.getByText('Merge writes it; undo brings yours back.', { exact: true }))
    .toBeVisible();
  const { recipe } = studio.store.getState();
  expect(recipe.method).toBe('recipe' in best.target && best.target.recipe.mergeMethod);
  await button('Undo').click();
  expect(studio.store.getState().recipe.method).toBe(before.method);

  const stopped = new AmalgamError('Canceled', 'Canceled.', '');
  const findBest = vi.spyOn(studio.worker, 'findBest').mockRejectedValue(stopped);
  // it works without a base, and all others need the one of the form
  await page.getByRole('combobox', { name: 'Merge method' }).selectOptions('linear');
  await find().click();
  await waitFor(() => expect(findBest).toHaveBeenCalled());
  await idle(studio);
  expect(findBest.mock.calls[0]![0].recipe).toMatchObject({ mergeMethod: 'linear', baseModel: before.base });
  expect(studio.store.getState().recipe.method).toBe('linear');
});

test('rows are drawn and ordered by the column that is pressed', async () => {
  const studio = await open();
  await button('Try all methods').click();
  await idle(studio);
  const first = () =>
    document.querySelector('.measure-table tbody:nth-of-type(2) tr:nth-of-type(2) th')?.textContent;
  const byMean = first();
  await expect.element(column('mean')).toHaveAttribute('aria-sort', 'ascending');
  for (const name of ['common', 'kitchen', 'harbour', 'workshop']) {
    await column(name).getByRole('button').click();
    await expect.element(column(name)).toHaveAttribute('aria-sort', 'ascending');
    if (first() !== byMean) return;
  }
  expect.unreachable('every text puts the same merge first');
});

test('measuring can be stopped; the merge waits for it and says so', async () => {
  const studio = await open({ hold: holding(1) });
  await measureButton().click();
  const merge = button('Merge');
  await expect.element(merge).toHaveAccessibleDescription('Models are being measured.');
  // the button that began it stops it, and keeps the focus
  await expect.element(button('Stop')).toHaveFocus();
  await userEvent.keyboard('{Enter}');
  await idle(studio);
  expect(studio.store.getState().measure.cells.size).toBe(0);
  await expect.element(merge).not.toHaveAttribute('aria-disabled');
});

test('trying can be stopped: the rows that are there stay', async () => {
  let cancel = async () => {};
  const canceled = new Promise<never>((_, reject) => {
    cancel = async () => reject(new AmalgamError('Canceled', 'Canceled.', 'Start again.'));
  });
  // four rows are there, then six, the seventh never comes
  const first = Promise.withResolvers<void>();
  const findBest: StudioWorker['findBest'] = async (request, onProgress) => {
    const { rows, texts } = await fixtureWorker().findBest(request, () => {});
    const step = { step: 'methods', item: rows[6]!.label, done: 6, total: rows.length, seconds: 1 } as const;
    const choosing = rows.map((row) => ({ ...row, blocks: { ...row.blocks, reporting: null } }));
    onProgress({ ...step, secondsLeft: null, rows: choosing.slice(0, 4), texts });
    await first.promise;
    onProgress({ ...step, secondsLeft: null, rows: choosing.slice(4, 6), texts });
    return canceled;
  };
  const studio = await open({}, { findBest, cancel });
  const { recipe } = studio.store.getState();
  await findButton().click();
  const rowsAre = (count: number) =>
    waitFor(() => expect(studio.store.getState().measure.found?.rows).toHaveLength(count));
  await rowsAre(4);
  // before a merge is measured, too, every number is of the part that merges are chosen on
  const isOfChoice = async () => {
    await expect.element(page.getByText(/on the third of each text that merges are chosen on/)).toBeVisible();
    expect(document.querySelectorAll('.measure-value:not([data-faint])')).toHaveLength(0);
    expect(document.querySelector('[data-faint]')).not.toBeNull();
  };
  await isOfChoice();
  first.resolve();
  await rowsAre(6);
  await isOfChoice();
  await button('Stop').click();
  await idle(studio);
  expect(studio.store.getState().measure.found).toMatchObject({ report: null, rows: { length: 6 } });
  expect(studio.store.getState().recipe).toBe(recipe);
  await expect.element(page.getByRole('button', { name: /^Use / }).first()).toBeVisible();
});

test('what was measured is there after a reload, and says when it was measured', async () => {
  const first = await open();
  for (const name of ['common', 'harbour', 'workshop']) await text(name).click();
  await measureButton().click();
  await idle(first);
  const shown = () => document.querySelector('.measure-value')?.textContent;
  const value = shown();
  expect(value).toMatch(/^\d\.\d{2,}/);

  await open();
  for (const name of ['common', 'harbour', 'workshop']) await text(name).click();
  await waitFor(() => expect(shown()).toBe(value));
  expect(document.querySelector<HTMLElement>('.measure-value')?.title).toMatch(/\nmeasured \d/);
  await expect.element(measureButton()).toHaveAttribute('aria-disabled', 'true');
});

test('models that were done when measuring was stopped keep their numbers', async () => {
  const evaluateMany: StudioWorker['evaluateMany'] = async (request, onProgress) => {
    const { models } = await fixtureWorker().evaluateMany(request, () => {});
    const running = { phase: 'running', done: 1, total: 2, rate: 1, secondsLeft: 1 } as const;
    onProgress({ ...running, finished: models.slice(0, 1).map((model, index) => ({ index, model })) });
    throw new AmalgamError('Canceled', 'Canceled.', 'Start again.');
  };
  const studio = await open({}, { evaluateMany });
  await measureButton().click();
  await idle(studio);
  // one model on four texts
  expect(studio.store.getState().measure.cells.size).toBe(4);
  expect(studio.store.getState().measure.running.size).toBe(0);
});

test('a model that cannot be run says why, once, and the others are measured', async () => {
  const error = new AmalgamError(
    'ArchitectureUnsupported',
    'Nobody knows how to run this.',
    'Merge it anyway.',
  );
  const studio = await open({ cannotRun: { workshop: error } });
  await measureButton().click();
  await idle(studio);
  await expect.element(page.getByText(/^.*, workshop: Nobody knows/)).toBeVisible();
  await expect.element(page.getByText('Merge it anyway.')).toBeVisible();
  const cells = [...studio.store.getState().measure.cells.values()];
  // three models on four texts; neither workshop nor the merge with it
  expect(cells.filter((cell) => 'blocks' in cell)).toHaveLength(12);
});

test('a file of a dataset becomes a column: its files, its columns, as much as is wanted', async () => {
  const readDataset = vi.spyOn(fixtureWorker(), 'readDataset');
  await open({}, { readDataset });
  await button('text').click();
  await button('Dataset').click();
  await page.getByLabelText('Dataset', { exact: true }).fill('owner/tales');
  await button('List files').click();
  await page.getByLabelText('File of the dataset').selectOptions('data/test.parquet');
  await expect.element(page.getByLabelText('Column of the file')).toHaveValue('text');
  await expect.element(page.getByText(/Commit 0123456789ab/)).toBeVisible();
  await page.getByLabelText('Column of the file').selectOptions('title');
  await page.getByLabelText('characters to take').fill('5000');
  await userEvent.keyboard('{Enter}');
  await button('Add text').click();
  await expect.element(column('owner/tales: data/test.parquet')).toBeVisible();
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
  await button('text').click();
  await button('Dataset').click();
  await page.getByLabelText('Dataset', { exact: true }).fill('owner/tales');
  await button('List files').click();
  await expect.element(page.getByText('Accept its license.')).toBeVisible();
});

test('without a text the contributors generate one: columns by their names, and the recipe is measured too', async () => {
  const studio = await open();
  const findBest = vi.spyOn(studio.worker, 'findBest');
  for (const name of ['common', 'kitchen', 'harbour', 'workshop']) await text(name).click();
  await expect.element(page.getByText(/Without a text, each contributor generates its own/)).toBeVisible();
  await button(/^Measure$/).click();
  await idle(studio);
  const request = findBest.mock.calls[0]![0];
  expect(request).toMatchObject({ texts: [], steps: [], also: [{ label: 'Task arithmetic' }] });
  for (const name of ['kitchen', 'harbour', 'workshop']) await expect.element(column(name)).toBeVisible();

  // so is what was tried and has no number of the reporting part; it stays the row that it is
  await findButton().click();
  await idle(studio);
  const tried = () => document.querySelectorAll('.measure-table tbody:nth-of-type(2) tr').length;
  await button(/^\d+ more$/).click();
  const count = tried();
  expect(document.querySelector('[data-faint]')).not.toBeNull();
  await button(/^measure \d+.missing numbers/).click();
  await idle(studio);
  expect(findBest.mock.calls.at(-1)![0].also!.length).toBeGreaterThan(1);
  await waitFor(() => expect(document.querySelector('[data-faint]')).toBeNull());
  expect(tried()).toBe(count);
});

test('on a phone every number is in view, and a name stays there when the table scrolls', async () => {
  const studio = await open();
  await measureButton().click();
  await idle(studio);
  await page.viewport(390, 844);
  await waitFor(() => expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(390));
  const table = document.querySelector<HTMLElement>('.measure-scroll')!;
  const rightOf = (of: Element) => of.getBoundingClientRect().right;
  const values = [...document.querySelectorAll('.measure-value')];
  expect(values).toHaveLength(25);
  expect(Math.max(...values.map(rightOf))).toBeLessThanOrEqual(rightOf(table));
  const heads = [...document.querySelectorAll('.measure-by')];
  for (const [i, head] of heads.slice(1).entries()) {
    expect(head.getBoundingClientRect().left).toBeGreaterThan(rightOf(heads[i]!) + 5);
  }
  for (const part of document.querySelectorAll('.measure-table tbody .cut > bdi')) {
    expect(part.scrollWidth).toBeLessThanOrEqual(part.clientWidth);
  }
  table.scrollLeft = 300;
  const name = document.querySelector('.measure-table tbody tr:nth-of-type(2) th')!;
  expect(name.getBoundingClientRect().left).toBeGreaterThanOrEqual(table.getBoundingClientRect().left - 1);
});
