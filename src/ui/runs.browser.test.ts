import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import type { Recipe } from '../formats/recipe';
import type { InterruptedRun } from '../reports/merge';
import { actOnRun, closeStudio, openTies, savedFiles, show, waitFor } from './open-studio.test.support';
import { currentRun, finishedRuns, interruptedRuns } from './state/runs';
import { editRecipe, type Studio, type StudioWorker, setView } from './state/studio';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';
import { holding } from './worker-running.test.fixture';

afterEach(closeStudio);

const open = async (options: FixtureOptions = {}, change: Partial<StudioWorker> = {}) =>
  (await openTies(options, change)).studio;

async function merge(studio: Studio) {
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await waitFor(() => expect(currentRun(studio.store.getState())?.status).toBe('done'));
}

test('a finished merge is there after a reload: its recipe, its charts, to be compared, to be forgotten', async () => {
  const first = await open();
  await page.getByLabelText('density of kitchen, number').fill('0.35');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(first.store.getState().plan.status).toBe('ready'));
  await merge(first);
  await waitFor(() => expect(finishedRuns(first.store.getState())).toHaveLength(1));
  const { report } = currentRun(first.store.getState())!;
  closeStudio();
  const studio = await open();
  await show('Layers');
  // the current recipe was merged: its counts are there
  const chip = page.getByRole('button', { name: /^A TIES · density kitchen 0\.35.* recipe · merged/ });
  await expect.element(chip).toBeVisible();
  expect(document.querySelector('.heat-cell')?.ariaLabel).not.toContain('about');
  // another recipe: it stands beside it, under its own name
  await page.getByLabelText('density of kitchen, number').fill('0.6');
  await userEvent.keyboard('{Enter}');
  await page.getByRole('button', { name: /^\+ TIES · density kitchen 0\.35/ }).click();
  await waitFor(() => expect(document.querySelectorAll('.layers-block .heatmap')).toHaveLength(3));
  await actOnRun('TIES', 'Rename');
  await page.getByRole('textbox', { name: /^Name of TIES/ }).fill('first try');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(finishedRuns(studio.store.getState())[0]?.name).toBe('first try'));
  await actOnRun('first try', 'Open its recipe');
  expect(studio.store.getState().recipe.contributors[0]?.parameters.density).toBe(0.35);
  expect(currentRun(studio.store.getState())?.report).toEqual(report);
  await expect.element(page.getByRole('tab', { name: 'Layers' })).toHaveAttribute('aria-selected', 'true');
  // now it is the current recipe
  await waitFor(() => expect(studio.store.getState().view.runs).toEqual(['now']));
  await page.getByRole('button', { name: 'Details', exact: true }).click();
  await expect.element(page.getByText('all of them')).toBeVisible();
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  await show('Files');
  await expect.element(page.getByRole('heading', { name: 'Files', exact: true })).toBeVisible();
  await show('Layers');
  await page.getByLabelText('density of kitchen, number').fill('0.6');
  await userEvent.keyboard('{Enter}');
  // the files are those of the merge, and said to be
  await show('Files');
  await expect.element(page.getByRole('heading', { name: 'Files to be written' })).toBeVisible();
  await expect.element(page.getByRole('heading', { name: 'Files of the last merge' })).toBeVisible();
  await show('Layers');
  await actOnRun('first try', 'Delete');
  await waitFor(() => expect(finishedRuns(studio.store.getState())).toEqual([]));
  await page.getByRole('button', { name: 'Undo', exact: true }).last().click();
  await waitFor(() => expect(finishedRuns(studio.store.getState())[0]?.name).toBe('first try'));
});

test('the storage badge lists what is kept, and deletes it piece by piece', async () => {
  const studio = await open();
  await merge(studio);
  await page.getByRole('button', { name: /^Storage: / }).click();
  const outputs = page.getByRole('region', { name: 'Merged models' });
  await expect.element(outputs).toBeVisible();
  await page.getByRole('button', { name: /^Delete kitchen/ }).click();
  await expect.element(page.getByText(/nothing interrupted/)).toBeVisible();
});

test('files of an older merge that are gone are said to be gone', async () => {
  const first = await open();
  await merge(first);
  await waitFor(() => expect(finishedRuns(first.store.getState())).toHaveLength(1));
  closeStudio();
  await open();
  await show('Layers');
  await actOnRun('', 'Open its recipe');
  await show('Files');
  await expect.element(page.getByText(/No longer kept in this browser/)).toBeVisible();
  const download = page.getByRole('button', { name: 'Download model.safetensors' });
  await expect.element(download).toHaveAccessibleDescription(/deleted; merge again/);
});

test('a merge that is canceled does not hide the files of the one before', async () => {
  const merging = fixtureWorker();
  const held = fixtureWorker({ hold: holding(0) });
  const studio = await open({}, { merge: (...asked) => merging.merge(...asked), cancel: held.cancel });
  await merge(studio);
  merging.merge = held.merge;
  await page.getByLabelText('density of kitchen, number').fill('0.35');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(studio.store.getState().plan.status).toBe('ready'));
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await show('Files');
  const files = page.getByRole('heading', { name: 'Files of the last merge' });
  await expect.element(files).toBeVisible();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await waitFor(() => expect(currentRun(studio.store.getState())?.status).toBe('canceled'));
  await expect.element(files).toBeVisible();
  await expect.element(page.getByRole('button', { name: 'Download model.safetensors' })).toBeVisible();
});

test('charts, tables and reports are saved as files', async () => {
  const studio = await open();
  const metric = page.getByLabelText('Metric');
  await expect.element(metric).toHaveValue('outputChange');
  await merge(studio);
  // a merge that ends does not turn what is looked at into something else
  await expect.element(metric).toHaveValue('outputChange');
  await page.getByLabelText('Metric').selectOptions('mergedSparsity');
  const saved = savedFiles();
  const choose = async (menu: RegExp, item: string) => {
    await page.getByRole('button', { name: menu }).click();
    await page.getByRole('menuitem', { name: new RegExp(`^${item}`) }).click();
  };
  await choose(/^Export the picture/, 'Figure as SVG');
  await choose(/^Export the picture/, 'Numbers as CSV');
  await page.getByRole('button', { name: 'Details', exact: true }).click();
  await page.getByRole('button', { name: 'Report as JSON' }).click();
  await waitFor(() => expect(saved.size).toBe(3));
  const files = await Promise.all([...saved].map(async ([name, text]) => [name, await text] as const));
  vi.restoreAllMocks();
  const [svg, csv, json] = files;
  expect(svg?.[0]).toMatch(/mergedSparsity\.svg$/);
  const drawn = new DOMParser().parseFromString(svg![1], 'image/svg+xml');
  expect(drawn.querySelector('parsererror')).toBeNull();
  // a cell for each linear module of each layer, each with its words
  expect(drawn.querySelectorAll('rect > title')).toHaveLength(6 * 7);
  const { tensors } = currentRun(studio.store.getState())!.report!;
  const lines = csv![1]
    .trim()
    .split('\r\n')
    .slice(1)
    .map((line) => line.split(','));
  const ofTensor = (metric: string) => lines.filter((line) => line[5] === metric);
  const compared = tensors.filter((t) => (t.counts?.atBase ?? null) !== null);
  expect(ofTensor('mergedSparsity').map((line) => [line[1], Number(line[7])])).toEqual(
    compared.map((t) => [t.name, t.counts!.atBase! / t.elements]),
  );
  const pairs = compared.filter((t) => t.contributors.length === 3);
  expect(ofTensor('overlap')).toHaveLength(3 * pairs.length);
  expect(new Set(lines.map((line) => line.at(-1)))).toEqual(new Set(['exact']));
  expect(json?.[0]).toMatch(/\.report\.json$/);
  expect(JSON.parse(json![1])).toEqual(currentRun(studio.store.getState())!.report);
});

test('the charts are saved as a picture', async () => {
  const studio = await open();
  await merge(studio);
  const pictures: Blob[] = [];
  const create = URL.createObjectURL.bind(URL);
  vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => {
    pictures.push(blob as Blob);
    return create(blob);
  });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => {});
  await page.getByRole('button', { name: 'Export the picture and its numbers' }).click();
  await page.getByRole('menuitem', { name: /^Figure as PNG/ }).click();
  await waitFor(() => expect(pictures.at(-1)?.type).toBe('image/png'));
  vi.restoreAllMocks();
  const bitmap = await createImageBitmap(pictures.at(-1)!);
  expect(bitmap.width).toBeGreaterThan(600);
});

test('the table of Layers is narrowed by words of the names', async () => {
  const studio = await open();
  await waitFor(() => expect(studio.store.getState().deltaStatistics.status).toBe('ready'));
  const table = page.getByRole('grid', { name: 'Numbers of every tensor' });
  await page.getByRole('searchbox', { name: 'Filter tensors' }).fill('layers.3 MLP');
  await expect.element(table).toHaveAttribute('aria-rowcount', '4');
  await expect.element(page.getByText(/3 of 56.tensors/)).toBeVisible();
});

test('a merge that is canceled before its first tensor leaves nothing', async () => {
  const interrupted: InterruptedRun[] = [];
  let stop: (why: AmalgamError) => void = () => {};
  const studio = await open(
    {},
    {
      merge: () =>
        new Promise((_, failed) => {
          stop = failed;
        }),
      interrupted: async () => [...interrupted],
      discardInterrupted: async () => {
        interrupted.length = 0;
      },
      cancel: async () => {
        const { recipe, destination } = currentRun(studio.store.getState())!;
        interrupted.push({ ...cutOff(recipe, destination.name), tensorsDone: 0 });
        stop(new AmalgamError('Canceled', 'Canceled.', 'Start again when you like.'));
      },
    },
  );
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect.element(page.getByText('Canceled. Nothing was kept.').first()).toBeVisible();
  expect(interrupted).toEqual([]);
  expect(interruptedRuns(studio.store.getState())).toEqual([]);
});

/** A merge into the browser's storage with some of its tensors done. */
function cutOff(recipe: Recipe, name: string): InterruptedRun {
  return {
    destination: { kind: 'downloads', name },
    recipe,
    engine: 'cpu',
    adapter: '',
    startedAt: new Date().toISOString(),
    tensorsDone: 3,
    tensors: 56,
    bytesDone: 1,
    bytes: 2,
  };
}

test('a merge that is cut to a LoRA cannot be paused, and says why', async () => {
  const studio = await open({ hold: holding(0) });
  editRecipe(studio, (recipe) => ({ ...recipe, output: 'adapter', combination: 'merged_svd' }));
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect
    .element(page.getByRole('button', { name: 'Pause' }))
    .toHaveAccessibleDescription(
      'A merge that is cut to a LoRA is written at its end: it cannot go on later.',
    );
  await page.getByRole('button', { name: 'Cancel' }).click();
});

test('a merge that is paused before its first tensor says what is kept, and no bytes of nothing', async () => {
  const interrupted: InterruptedRun[] = [];
  const fixture = fixtureWorker({ hold: holding(0) });
  const studio = await open(
    {},
    {
      ...fixture,
      interrupted: async () => [...interrupted],
      cancel: async () => {
        const { recipe, destination } = currentRun(studio.store.getState())!;
        const none = { tensorsDone: 0, tensors: 0, bytesDone: 0, bytes: 0 };
        interrupted.push({ ...cutOff(recipe, destination.name), ...none });
        await fixture.cancel();
      },
    },
  );
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect
    .element(page.getByText('Paused before the first tensor. What was fetched is kept.'))
    .toBeVisible();
});

test('runs of other models leave the comparison with their models', async () => {
  const studio = await open();
  await merge(studio);
  await waitFor(() => expect(finishedRuns(studio.store.getState())).toHaveLength(1));
  const [past] = finishedRuns(studio.store.getState());
  setView(studio, { runs: ['now', past!.id] });
  const { recipe, models } = studio.store.getState();
  const [first] = recipe.contributors;
  // one that is switched off is still there
  editRecipe(studio, (now) => ({
    ...now,
    contributors: now.contributors.map((c) => ({ ...c, enabled: false })),
  }));
  expect(studio.store.getState().view.runs).toEqual(['now', past!.id]);
  const other = { ...models[0]!, ref: 'other' };
  studio.store.setState({ models: [...models, other] });
  editRecipe(studio, (now) => ({ ...now, contributors: [{ ...first!, ref: 'other' }] }));
  expect(studio.store.getState().view.runs).toEqual(['now']);
});

test('who changes a tensor is told apart by place and color, also once Evaluate was looked at', async () => {
  await open();
  await show('Measure');
  await expect.element(page.getByRole('group', { name: 'Texts to measure on' })).toBeVisible();
  await show('Layers');
  const apart = (swatches: Element[]) => {
    const boxes = swatches.map((swatch) => swatch.getBoundingClientRect());
    expect(boxes.length).toBeGreaterThan(1);
    expect(new Set(boxes.map((box) => `${box.left} ${box.top}`)).size).toBe(boxes.length);
    expect(boxes.every((box) => box.width > 4 && box.height > 4)).toBe(true);
    const colors = swatches.map((swatch) => getComputedStyle(swatch).backgroundColor);
    expect(new Set(colors).size).toBe(colors.length);
  };
  await waitFor(() => {
    const cells = [...document.querySelectorAll('.table-row [role="gridcell"]')].map((holder) => [
      ...holder.querySelectorAll('.swatch'),
    ]);
    apart(cells.reduce((most, cell) => (cell.length > most.length ? cell : most), []));
  });
});

test('a merge that is paused says so and goes on', async () => {
  const interrupted: InterruptedRun[] = [];
  const hold = holding(1);
  const fixture = fixtureWorker({ hold });
  const studio = await open(
    {},
    {
      ...fixture,
      interrupted: async () => [...interrupted],
      cancel: async () => {
        const { recipe, destination } = currentRun(studio.store.getState())!;
        interrupted.push(cutOff(recipe, destination.name));
        await fixture.cancel();
      },
      merge: async (request, onProgress) => {
        if (request.resume) {
          interrupted.length = 0;
          hold.letGo();
        }
        return fixture.merge(request, onProgress);
      },
    },
  );
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect.element(page.getByText(/^Paused: .* written and kept$/).first()).toBeVisible();
  await expect.element(page.getByText(/^3 of 56.tensors done/)).toBeVisible();
  await page.getByRole('button', { name: 'Continue' }).click();
  await waitFor(() => expect(currentRun(studio.store.getState())?.status).toBe('done'));
  expect(interruptedRuns(studio.store.getState())).toEqual([]);
});
