import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import type { InterruptedRun } from '../reports/merge';
import type { PlanProblem } from '../reports/plan';
import { draft } from './local/database';
import { closeStudio, idle, openStudio, openTies, show, waitFor } from './open-studio.test.support';
import { recipeLink } from './state/recipe-draft';
import { currentRun } from './state/runs';
import { editRecipe, type Studio, type StudioWorker, setView } from './state/studio';
import { fixtureWorker } from './worker.test.fixture';
import { holding } from './worker-running.test.fixture';

afterEach(closeStudio);

const merge = () => page.getByRole('button', { name: 'Merge', exact: true });
const cells = () => [...document.querySelectorAll<HTMLElement>('.heat-cell')];

test('where it costs little the changes are measured unasked; another method is predicted from the same pass', async () => {
  const deltaStatistics = vi.spyOn(fixtureWorker(), 'deltaStatistics');
  const { studio } = await openStudio({}, { deltaStatistics });
  await waitFor(() => expect(studio.store.getState().deltaStatistics.status).toBe('ready'));
  await page.getByLabelText('Merge method').selectOptions('sce');
  setView(studio, { metric: 'mergedSparsity' });
  await waitFor(() => expect(studio.store.getState().plan.status).toBe('ready'));
  expect(cells().every((c) => c.ariaLabel?.endsWith('not measured yet'))).toBe(true);
  setView(studio, { metric: 'cosine' });
  await waitFor(() => expect(cells().some((c) => c.ariaLabel?.includes('cosine'))).toBe(true));
  expect(deltaStatistics).toHaveBeenCalledTimes(1);
});

test('Ctrl and Enter merge from anywhere but where text is written', async () => {
  const { studio } = await openTies();
  await show('Try');
  await page.getByRole('textbox', { name: 'Prompt' }).click();
  await userEvent.keyboard('{Control>}{Enter}{/Control}');
  await waitFor(() => expect(studio.store.getState().job).toBeNull());
  expect(currentRun(studio.store.getState())).toBeNull();
  await page.getByLabelText('density of kitchen, number').click();
  await userEvent.keyboard('{Control>}{Enter}{/Control}');
  await expect.element(page.getByText(/Merged in/)).toBeVisible();
});

test('an edit is planned again, with the edited value', async () => {
  const plan = vi.spyOn(fixtureWorker(), 'plan');
  const { studio } = await openTies({}, { plan });
  const field = page.getByLabelText('density of kitchen, number');
  await field.fill('0.35');
  await userEvent.keyboard('{Enter}');
  await waitFor(() =>
    expect(plan.mock.lastCall?.[0].models?.[0]?.parameters).toEqual({ weight: 1, density: 0.35 }),
  );
  await expect.element(field).toHaveValue('0.35');
  expect(studio.store.getState().recipe.contributors[1]?.parameters.density).toBe(0.2);
});

test('what only the merge could find, as in a tokenizer of a hub, is said after it', async () => {
  const worker = fixtureWorker();
  let isRead = false;
  const found: PlanProblem = {
    severity: 'warning',
    code: 'TokensShareId',
    message: 'Two tokens have one id.',
    remedy: 'Correct them.',
  };
  const { studio } = await openStudio(
    {},
    {
      plan: async (recipe) => {
        const report = await worker.plan(recipe);
        return isRead ? { ...report, problems: [...report.problems, found] } : report;
      },
      merge: async (request, onProgress) => {
        isRead = true;
        return worker.merge(request, onProgress);
      },
    },
  );
  expect(studio.store.getState().plan.report?.problems).toEqual([]);
  await merge().click();
  await waitFor(() => expect(studio.store.getState().plan.report?.problems).toEqual([found]));
  await show('Files');
  await expect.element(page.getByText(/Two tokens have one id/)).toBeVisible();
});

test('what is out of bounds is said at the field, and Merge says why it waits', async () => {
  await openTies();
  await page.getByLabelText('density of harbour, number').fill('200');
  await userEvent.keyboard('{Enter}');
  await expect.element(page.getByText('Must be from 0 to 100.').first()).toBeVisible();
  await expect.element(merge()).toHaveAttribute('aria-disabled', 'true');
  await expect.element(merge()).toHaveAccessibleDescription(/density of harbour/);
});

test('plan errors keep Merge closed and are shown with their remedy', async () => {
  const problem = {
    severity: 'error',
    code: 'X',
    message: 'Shapes differ.',
    remedy: 'Take it out.',
  } as const;
  const merged = vi.fn<StudioWorker['merge']>();
  await openStudio({ problems: [problem] }, { merge: merged }, /Shapes differ/);
  await expect.element(page.getByText('Shapes differ. Take it out.').first()).toBeVisible();
  await expect.element(merge()).toHaveAccessibleDescription(/1.error/);
  (merge().element() as HTMLElement).click();
  expect(merged).not.toHaveBeenCalled();
});

test('every method makes its own form, without a word of it in the studio', async () => {
  await openTies();
  const picker = page.getByLabelText('Merge method');
  await picker.selectOptions('dare_ties');
  await expect.element(page.getByLabelText('seed')).toBeVisible();
  await picker.selectOptions('passthrough');
  await expect.element(page.getByLabelText('scale of kitchen, number')).toBeVisible();
  await expect.element(page.getByText(/Switch off 2/).first()).toBeVisible();
  expect(document.querySelector('[aria-label="density of kitchen, number"]')).toBeNull();
});

const cutOff: InterruptedRun = {
  destination: { kind: 'downloads', name: 'kitchen-ties' },
  recipe: { mergeMethod: 'ties', baseModel: 'samples/base', models: [], parameters: {}, amalgam: {} },
  engine: 'cpu',
  adapter: 'typed arrays',
  startedAt: '2026-11-20T00:00:00.000Z',
  tensorsDone: 20,
  tensors: 56,
  bytesDone: 1_000_000,
  bytes: 2_480_000,
};

test('R47: an interrupted merge is offered at the start, and is resumed with its engine and its place', async () => {
  const merged = vi.fn<StudioWorker['merge']>(() => new Promise(() => {}));
  const interrupted = async () => [cutOff];
  await openStudio({}, { merge: merged, interrupted }, '20 of 56 tensors, 1.00 MB written.');
  await page.getByRole('button', { name: 'Resume' }).click();
  const { recipe, destination } = cutOff;
  await expect
    .poll(() => merged.mock.calls[0]?.[0])
    .toEqual({ recipe, engine: 'cpu', destination, stream: false, resume: true });
});

test('a failed merge says what, what to do, and gives the details', async () => {
  await openStudio({ failAt: 0.5 });
  await merge().click();
  await page.getByRole('button', { name: 'Details' }).click();
  await expect.element(page.getByRole('alert').getByText(/no memory left/)).toBeVisible();
  await expect.element(page.getByText(/Close other tabs/)).toBeVisible();
  await expect.element(page.getByRole('button', { name: 'Copy details' })).toBeVisible();
});

test('R36 R40: without WebGPU and storage the studio says so and offers what works', async () => {
  const { studio } = await openStudio({
    engine: {
      auto: 'cpu',
      webgpu: { available: false, adapter: '', isFallback: false, maxBufferBytes: 0, why: 'No WebGPU here.' },
      storage: { available: false, why: 'Private window.' },
    },
  });
  expect(studio.store.getState().output.kind).toBe('folder');
  await page.getByRole('button', { name: /^CPU/ }).click();
  await expect.element(page.getByText(/No WebGPU here: merges run on the CPU engine/)).toBeVisible();
  await expect.element(page.getByText(/Private window: models from the Hub/)).toBeVisible();
});

test('the theme can be chosen and is remembered', async () => {
  await openStudio();
  await page.getByRole('button', { name: 'Theme: system' }).click();
  // the page of a test is light by its system: the first press has to change something that can be seen
  await expect.element(page.getByRole('button', { name: 'Theme: dark' })).toBeVisible();
  expect(document.documentElement.dataset.theme).toBe('dark');
  expect(getComputedStyle(document.documentElement).colorScheme).toBe('dark');
  expect(localStorage.getItem('amalgam.theme')).toBe('dark');
});

test('on a phone the recipe is a tab and the run bar stays', async () => {
  await openStudio();
  await page.viewport(390, 844);
  await page.getByRole('tab', { name: 'Recipe' }).click();
  await expect.element(page.getByLabelText('Merge method')).toBeVisible();
  await expect.element(merge()).toBeInViewport();
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(390);
});

test('undo and redo, by key and by button', async () => {
  const { studio } = await openStudio();
  const weights = () => studio.store.getState().recipe.contributors.map((c) => c.parameters.weight ?? 1);
  const undoButton = page.getByRole('button', { name: 'Undo' });
  await expect.element(undoButton).toHaveAttribute('aria-disabled', 'true');
  const field = page.getByLabelText('weight of kitchen, number');
  await field.fill('0.35');
  await userEvent.keyboard('{Enter}');
  expect(weights()).toEqual([0.35, 1, 1]);
  (document.activeElement as HTMLElement).blur();
  await userEvent.keyboard('{Control>}z{/Control}');
  expect(weights()).toEqual([1, 1, 1]);
  await page.getByRole('button', { name: 'Redo' }).click();
  expect(weights()).toEqual([0.35, 1, 1]);
  await undoButton.click();
  expect(weights()).toEqual([1, 1, 1]);
});

test('the recipe in work comes back with the next visit, and a saved one by its name', async () => {
  const first = await openTies();
  await page.getByLabelText('density of kitchen, number').fill('0.45');
  await userEvent.keyboard('{Enter}');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByLabelText('Name of this recipe').fill('half of the kitchen');
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
  await expect.element(page.getByRole('button', { name: 'Delete half of the kitchen' })).toBeVisible();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByLabelText('density of kitchen, number').fill('0.55');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(draft()?.recipe.contributors[0]?.parameters.density).toBe(0.55));
  closeStudio();
  const { studio } = await openTies();
  expect(studio).not.toBe(first.studio);
  const density = () => studio.store.getState().recipe.contributors[0]?.parameters.density;
  await waitFor(() => expect(density()).toBe(0.55));
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page
    .getByRole('button', { name: /half of the kitchen/ })
    .first()
    .click();
  expect(density()).toBe(0.45);
});

test('edits made while the sample is still opened are kept, on a first visit and on a later one', async () => {
  const baseOf = () => draft()?.recipe.base;
  const slow = async () => {
    let opened: () => void = () => undefined;
    const sample = await fixtureWorker().openSample();
    const openSample = () =>
      new Promise<typeof sample>((resolve) => {
        opened = () => resolve(sample);
      });
    const { studio } = await openStudio({}, { openSample }, 'Examples');
    // the recipe of the last visit is there
    const { store } = studio;
    await waitFor(() => expect(store.getState().opening).toContain('the sample'));
    return { studio, opened: () => opened() };
  };
  const first = await slow();
  editRecipe(first.studio, (recipe) => ({ ...recipe, base: 'mine/base' }));
  first.opened();
  await waitFor(() => expect(baseOf()).toBe('mine/base'));
  closeStudio();
  const later = await slow();
  await page.getByRole('button', { name: 'New', exact: true }).click();
  await waitFor(() => expect(baseOf()).toBeNull());
  later.opened();
});

test('an edit that was not written yet when the page was left comes back', async () => {
  const { studio } = await openTies();
  const density = (of: Studio) => of.store.getState().recipe.contributors[0]?.parameters.density;
  for (const value of [0.61, 0.62, 0.63]) {
    editRecipe(studio, ({ contributors: [first, ...others], ...recipe }) => ({
      ...recipe,
      contributors: [{ ...first!, parameters: { ...first!.parameters, density: value } }, ...others],
    }));
  }
  dispatchEvent(new Event('pagehide'));
  closeStudio();
  const again = (await openTies()).studio;
  await waitFor(() => expect(density(again)).toBe(0.63));
});

test('a recipe in the address is opened, and leaves the address', async () => {
  const yaml = 'merge_method: linear\nmodels:\n  - model: samples/base\n    parameters: {weight: 1}\n';
  const link = await recipeLink(
    `${yaml}  - model: samples/workshop\n    parameters: {weight: 2}\n`,
    location.href,
  );
  history.replaceState(null, '', new URL(link).hash);
  const { studio } = await openStudio();
  await waitFor(() => expect(studio.store.getState().recipe.method).toBe('linear'));
  expect(location.hash).toBe('');
  expect(studio.store.getState().history.past).toEqual([]);
});

test('base and the chosen runs answer side by side, contributors too where they are asked, on a phone below each other', async () => {
  const { studio } = await openTies();
  await show('Try');
  await page.getByLabelText('tokens', { exact: true }).fill('5');
  await userEvent.keyboard('{Enter}');
  await page.getByLabelText('contributors too').click();
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await waitFor(() => expect(studio.store.getState().job).toBeNull());
  const columns = [...document.querySelectorAll<HTMLElement>('.written-column')];
  expect(columns.map((c) => c.ariaLabel)).toEqual([
    'base',
    'kitchen',
    'harbour',
    'workshop',
    'A TIES · 0.20',
  ]);
  for (const column of columns) {
    expect(column.querySelector('.written-text')?.textContent).toMatch(/^Recipe:( \w+){5}$/);
    expect(column.textContent).toMatch(/5\stokens in .*, stopped at the limit/);
  }
  await page.viewport(390, 844);
  await waitFor(() => expect(new Set(columns.map((c) => c.getBoundingClientRect().left)).size).toBe(1));
  expect(document.documentElement.scrollWidth).toBeLessThanOrEqual(390);
  await page.viewport(1440, 900);
  await page.getByLabelText('contributors too').click();
  await page.getByLabelText('Add a run').selectOptions('dare_linear');
  const labels = () => [...document.querySelectorAll<HTMLElement>('.written-column')].map((c) => c.ariaLabel);
  expect(labels()).toEqual(['base', 'A TIES · 0.20', 'B DARE · 0.50']);
  // what is new is written by itself
  await waitFor(() => expect(writtenOf('B DARE · 0.50')).toMatch(/^Recipe:( \w+){5}$/));
});

const columnOf = (label: string) =>
  document.querySelector<HTMLElement>(`.written-column[aria-label="${label}"]`);
const writtenOf = (label: string) => columnOf(label)?.querySelector('.written-text')?.textContent;

test('a recipe that changes while weights are opened waits for the text: nothing is canceled', async () => {
  const hold = holding(0);
  const { studio } = await openTies({ hold });
  await show('Try');
  await page.getByLabelText('tokens', { exact: true }).fill('1');
  await userEvent.keyboard('{Enter}');
  const [cancel, calls] = [vi.spyOn(studio.worker, 'cancel'), vi.spyOn(studio.worker, 'generate')];
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await waitFor(() => expect(calls).toHaveBeenCalledTimes(1));
  editRecipe(studio, (recipe) => ({ ...recipe, contributors: recipe.contributors.slice(1) }));
  hold.letGo();
  // base, perhaps the recipe of before, and the recipe as it is
  await waitFor(() => {
    const { target } = calls.mock.lastCall![0];
    expect('recipe' in target && target.recipe.models).toHaveLength(2);
  });
  await idle(studio);
  expect(cancel).not.toHaveBeenCalled();
});

test('texts follow the sliders with the same seed; what the base would not have said is tinted', async () => {
  const { studio } = await openTies();
  await show('Try');
  await page.getByLabelText('tokens', { exact: true }).fill('5');
  await userEvent.keyboard('{Enter}');
  const generate = page.getByRole('button', { name: 'Generate', exact: true });
  await generate.click();
  await waitFor(() => expect(writtenOf('A TIES · 0.20')).toMatch(/^Recipe:( \w+){5}$/));
  await idle(studio);
  const [base, before] = [writtenOf('base'), writtenOf('A TIES · 0.20')];
  const tinted = [...columnOf('A TIES · 0.20')!.querySelectorAll('mark')];
  expect(tinted.map(({ title }) => title)).toEqual(['41.0\u00a0% here, 2.0\u00a0% in the base']);
  expect(columnOf('base')!.querySelector('mark')).toBeNull();

  const calls = vi.spyOn(studio.worker, 'generate');
  editRecipe(studio, (recipe) => ({ ...recipe, contributors: recipe.contributors.slice(1) }));
  await waitFor(() => expect(writtenOf('A TIES · 0.20')).not.toBe(before));
  await idle(studio);
  expect(writtenOf('A TIES · 0.20')).toMatch(/^Recipe:( \w+){5}$/);
  expect(writtenOf('base')).toBe(base);
  expect(calls).toHaveBeenCalledTimes(1);
  expect(calls.mock.calls[0]![0].seed).toBe(0);

  await page.getByLabelText('follow the sliders').click();
  editRecipe(studio, (recipe) => ({ ...recipe, contributors: recipe.contributors.slice(1) }));
  await expect.element(page.getByText('Of the recipe before. Generate writes it again.')).toBeVisible();
  await generate.click();
  await idle(studio);
  expect(calls).toHaveBeenCalledTimes(2);

  // all is there: once more is another draw, of all
  await generate.click();
  await idle(studio);
  expect(calls).toHaveBeenCalledTimes(4);
  expect(calls.mock.calls.slice(2).map(([{ seed }]) => seed)).toEqual([1, 1]);
  expect(writtenOf('base')).not.toBe(base);
});
