import { interpolateViridis } from 'd3-scale-chromatic';
import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import type { EffectsRequest } from '../reports/evaluate';
import { channelsOf } from './charts/color-scale';
import { effectOf } from './charts/measured';
import { metrics } from './charts/metrics';
import {
  actOnRun,
  closeStudio,
  idle,
  openStudio,
  openTies,
  savedFiles,
  show,
  waitFor,
} from './open-studio.test.support';
import { currentRun, predictedRuns } from './state/runs';
import { editRecipe, setView } from './state/studio';

afterEach(closeStudio);

const cells = () => [...document.querySelectorAll<HTMLElement>('.heat-cell')];
const cell = (name: string) => document.querySelector<HTMLElement>(`.heat-cell[data-name="${name}"]`);

test('the chart is honest before anything is measured, and predicts once the changes are', async () => {
  const { studio } = await openTies({ download: 3e9 });
  const offer = page.getByRole('button', { name: 'Measure the changes now' });
  await expect.element(offer).toBeVisible();
  await expect.element(page.getByText(/downloads 3.00\sGB/)).toBeVisible();
  expect(cells()).toHaveLength(42);
  expect(cells().every((c) => c.ariaLabel?.endsWith('not measured yet'))).toBe(true);
  await offer.click();
  await page.getByLabelText('Metric').selectOptions('mergedSparsity');
  const down = () => cell('model.layers.3.mlp.down_proj.weight')?.ariaLabel?.replace(/\s/g, ' ');
  // from samples, so with its error
  await waitFor(() => expect(down()).toMatch(/^layer 3, mlp.down_proj, about \d+\.\d % at the base, within/));
  await page.getByLabelText('Metric').selectOptions('trimmed');
  await waitFor(() => expect(down()).toBe('layer 3, mlp.down_proj, 80.0 % trimmed'));
  // of one color, in words
  await expect
    .element(page.getByText(/Trimmed is 80.0.% in every layer: there is nothing to compare/))
    .toBeVisible();
  await page.getByLabelText('density of kitchen, number').fill('0.35');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(down()).toBe('layer 3, mlp.down_proj, 65.0 % trimmed'));
  expect(currentRun(studio.store.getState())).toBeNull();
});

test('the metric stays whatever method and runs become; where a recipe lacks it, it says so', async () => {
  const { studio } = await openTies();
  const metric = () => page.getByLabelText('Metric').element() as HTMLSelectElement;
  const opened = () => studio.store.getState().view.opened?.metric;
  await waitFor(() => expect(opened()).toBe(metric().value));
  const first = metric().value;
  await page.getByLabelText('Add a run').selectOptions('task_arithmetic');
  for (const method of ['dare_linear', 'task_arithmetic', 'ram', 'ties']) {
    await page.getByRole('combobox', { name: 'Merge method' }).selectOptions(method);
    await waitFor(() => expect(studio.store.getState().plan.status).toBe('ready'));
    const isSaid = document.querySelector('.layers-screen')?.textContent?.includes('is shown instead.');
    expect(isSaid || metric().value === first, method).toBe(true);
  }
  // of two models only; one alone has no such number
  setView(studio, { opened: { metric: 'cosine', insteadOf: null }, runs: ['now'] });
  await waitFor(() => expect(metric().value).toBe('cosine'));
  editRecipe(studio, (recipe) => ({ ...recipe, contributors: recipe.contributors.slice(0, 1) }));
  await expect.element(page.getByText(/this recipe has only one\. .* is shown instead\./)).toBeVisible();
  expect(metric().value).not.toBe('cosine');
});

test('a heatmap is one tab stop; arrow keys move, Enter opens the tensor', async () => {
  const { studio } = await openTies();
  await show('Layers');
  await waitFor(() => expect(document.querySelectorAll('.heatmap')).toHaveLength(1));
  const [grid] = document.querySelectorAll<HTMLElement>('.heatmap');
  const stops = grid?.querySelectorAll<HTMLElement>('[tabindex="0"]');
  expect(stops).toHaveLength(1);
  stops?.[0]?.focus();
  await userEvent.keyboard('{ArrowDown}{ArrowDown}');
  expect((document.activeElement as HTMLElement).dataset.name).toBe('model.layers.2.self_attn.q_proj.weight');
  expect(grid?.querySelectorAll('[tabindex="0"]')).toHaveLength(1);
  await userEvent.keyboard('{Enter}');
  expect(studio.store.getState().view.selected).toBe('model.layers.2.self_attn.q_proj.weight');
  await userEvent.keyboard('{Control>}{ArrowDown}{/Control}');
  expect((document.activeElement as HTMLElement).dataset.name).toBe('model.layers.5.self_attn.q_proj.weight');
});

test('colors lie under their cells, and follow a slider before the words do', async () => {
  const { studio } = await openTies();
  await waitFor(() => expect(studio.store.getState().deltaStatistics.status).toBe('ready'));
  // the color of a cell beside its number, looked up where the cell is on the page
  const color = (name: string) => {
    const element = cell(name) as HTMLElement;
    const canvas = element.closest('.heat-body')?.querySelector('canvas') as HTMLCanvasElement;
    const [at, on] = [element.getBoundingClientRect(), canvas.getBoundingClientRect()];
    const scale = canvas.width / on.width;
    const place = (from: number, size: number) => Math.floor((from + size / 5) * scale);
    const [x, y] = [place(at.left - on.left, at.width), place(at.top - on.top, at.height)];
    return [...(canvas.getContext('2d')?.getImageData(x, y, 1, 1).data ?? [])].join();
  };
  const edges = () =>
    cells().every((element) => {
      const canvas = element.closest('.heat-body')?.querySelector('canvas') as HTMLCanvasElement;
      const [at, on] = [element.getBoundingClientRect(), canvas.getBoundingClientRect()];
      if (element.dataset.state !== 'measured') return true;
      const context = canvas.getContext('2d') as CanvasRenderingContext2D;
      const inside = (x: number, y: number) =>
        context.getImageData(Math.round(x - on.left), Math.round(y - on.top), 1, 1).data[3] === 255;
      const [middle, center] = [at.left + at.width / 2, at.top + at.height / 2];
      return (
        inside(at.left + 1, center) &&
        inside(at.right - 2, center) &&
        inside(middle, at.top + 1) &&
        inside(middle, at.bottom - 2) &&
        !inside(at.left - 2, center) &&
        !inside(middle, at.bottom + 1)
      );
    });
  const down = 'model.layers.3.mlp.down_proj.weight';
  /** How far the color is from viridis at the place on the legend that the words say, at most over red, green and blue. */
  const off = () => {
    const share = Number(/([\d.]+)\s% of the energy/.exec(cell(down)?.ariaLabel ?? '')?.[1]) / 100;
    const [, least, , most] = [...document.querySelectorAll('.legend > span')].map(
      ({ textContent }) => Number.parseFloat(textContent!) / 100,
    ) as [number, number, number, number];
    const said = channelsOf(interpolateViridis((share - least) / (most - least)));
    const seen = color(down).split(',').map(Number);
    return Math.max(...said.map((channel, i) => Math.abs(channel - seen[i]!)));
  };
  setView(studio, { metric: 'keptEnergy' });
  await waitFor(() => expect(off()).toBeLessThan(3));
  expect(edges()).toBe(true);
  const colors = () =>
    cells()
      .map(({ dataset }) => color(dataset.name!))
      .join();
  const before = [colors(), cell(down)?.ariaLabel];
  await page.getByLabelText('density of kitchen, number').fill('0.3');
  await userEvent.keyboard('{Enter}');
  expect(colors()).not.toBe(before[0]);
  await waitFor(() => expect(cell(down)?.ariaLabel).not.toBe(before[1]));
  expect(off()).toBeLessThan(3);
  await page.getByLabelText('Metric').selectOptions('size');
  await waitFor(() => expect(cell(down)?.ariaLabel).toMatch(/of the base’s norm$/));
  expect(edges()).toBe(true);
});

test('two settings are compared without a merge: on one scale, with their difference', async () => {
  const { studio } = await openTies();
  await waitFor(() => expect(studio.store.getState().deltaStatistics.status).toBe('ready'));
  await page.getByLabelText('Metric').selectOptions('trimmed');
  await page.getByLabelText('Add a run').selectOptions('the settings as they are');
  await expect.element(page.getByText(/Trimmed is the same in A and B, in every layer/)).toBeVisible();
  const said = () =>
    [...document.querySelectorAll<HTMLElement>('[data-name="model.layers.3.mlp.down_proj.weight"]')].map(
      (c) => c.ariaLabel?.replace(/\s/g, ' '),
    );
  await page.getByLabelText('density of kitchen, number').fill('0.35');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(said()[0]).toBe('layer 3, mlp.down_proj, 65.0 % trimmed'));
  expect(said()[1]).toBe('layer 3, mlp.down_proj, 80.0 % trimmed');
  await waitFor(() => expect(said()[2]).toBe('layer 3, mlp.down_proj, +15.0 pp against A'));
  await expect.element(page.getByText('B − A').first()).toBeVisible();
  // beside the panel of a tensor no cell of the table is cut
  await page.getByLabelText('Metric').selectOptions('mergedSparsity');
  setView(studio, { selected: 'model.layers.3.mlp.down_proj.weight' });
  await expect.element(page.getByText('Shown runs')).toBeVisible();
  const cells = document.querySelectorAll('[aria-label="Numbers of every tensor"] [role="row"] > *');
  expect(cells.length).toBeGreaterThan(8);
  expect([...cells].filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.textContent)).toEqual([]);
  setView(studio, { selected: null });
  // hidden, and gone
  await page.getByRole('button', { name: /^B TIES/ }).click();
  await waitFor(() => expect(document.querySelectorAll('.layers-block .heatmap')).toHaveLength(1));
  await actOnRun('TIES', 'Delete');
  expect(predictedRuns(studio.store.getState())).toEqual([]);
  expect(currentRun(studio.store.getState())).toBeNull();
});

test('a map without numbers says why: not merged, not of the method, nothing different', async () => {
  const { studio } = await openTies();
  for (const other of ['now', 'task_arithmetic', 'sce', 'model_stock']) {
    await page.getByLabelText('Add a run').selectOptions(other);
    const { id } = predictedRuns(studio.store.getState()).at(-1)!;
    for (const metric of metrics.filter(({ measure }) => measure !== effectOf)) {
      setView(studio, { runs: ['now', id], metric: metric.id });
      await waitFor(() =>
        expect(document.querySelectorAll('.layers-block, .screen > .empty').length).toBeGreaterThan(0),
      );
      const maps = [...document.querySelectorAll<HTMLElement>('.layers-block:not(.layers-depth)')];
      for (const map of maps) {
        const isEmpty = map.querySelector('[data-state="measured"]') === null;
        const words = map.querySelector('.empty')?.textContent ?? '';
        expect(isEmpty, `${other} ${metric.id} ${map.textContent}`).toBe(/^.{15,}\.$/.test(words));
      }
    }
  }
});

test('effects on the text: of what was written in Try, for every run, measured when chosen and again for other settings', async () => {
  const { studio } = await openTies();
  await waitFor(() => expect(studio.store.getState().deltaStatistics.status).toBe('ready'));
  await page.getByLabelText('Metric').selectOptions('effect');
  await page.getByRole('button', { name: 'Write one in Try' }).click();
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await idle(studio);
  const effects = vi.spyOn(studio.worker, 'effects');
  await show('Layers');
  await expect.element(page.getByText(/^On “Recipe: /)).toBeVisible();
  const down = 'model.layers.3.mlp.down_proj.weight';
  const said = () => cell(down)?.ariaLabel?.replace(/\s/g, ' ');
  await waitFor(() => expect(said()).toMatch(/^layer 3, mlp.down_proj, (\+|−)?[\d.]+ nats$/));
  expect(effects.mock.calls[0]![0]).toMatchObject({
    without: [{ model: 'samples/base' }],
    prompt: 'Recipe:',
  });
  expect(cell('model.embed_tokens.weight')?.ariaLabel ?? 'none').not.toMatch(/nats/);
  // it is in the files
  const saved = savedFiles();
  await page.getByRole('button', { name: /^Export the picture/ }).click();
  await page.getByRole('menuitem', { name: /^Numbers as CSV/ }).click();
  await waitFor(() => expect(saved.size).toBe(1));
  const [csv] = await Promise.all(saved.values());
  vi.restoreAllMocks();
  expect(csv!.split('\r\n').filter((line) => /,effect,,-?[\d.]+,0,exact$/.test(line))).toHaveLength(42);
  // a second run, and settings that change
  await page.getByLabelText('Add a run').selectOptions('the settings as they are');
  await page.getByLabelText('density of kitchen, number').fill('0.35');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(studio.store.getState().effects.ofRecipes.size).toBeGreaterThan(1));
  await waitFor(() => expect(document.querySelectorAll('.layers-block .heatmap').length).toBeGreaterThan(1));
});

test('effects of each model: against the merge without it, all models at once, and the strongest named', async () => {
  const { studio } = await openTies();
  await waitFor(() => expect(studio.store.getState().deltaStatistics.status).toBe('ready'));
  await show('Try');
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await idle(studio);
  const [weak, strong, gate] = [
    'model.layers.0.mlp.up_proj.weight',
    'model.layers.3.mlp.down_proj.weight',
    'model.layers.1.mlp.gate_proj.weight',
  ];
  const effects = vi.spyOn(studio.worker, 'effects').mockResolvedValue([
    [
      { name: weak!, effect: 0.25 },
      { name: strong!, effect: 1.5 },
    ],
    [{ name: strong!, effect: -2 }],
    [{ name: gate!, effect: 0.5 }],
  ]);
  await show('Layers');
  await page.getByLabelText('Metric').selectOptions('modelEffect');
  await expect
    .element(
      page.getByText(
        /Most of all models: harbour −2(\.0+)? nats in layer 3, mlp.down_proj; kitchen \+1\.50* nats in layer 3, mlp\.down_proj; workshop/,
      ),
    )
    .toBeVisible();
  const names = ({ without }: EffectsRequest) =>
    without.map(
      (target) => 'recipe' in target && target.recipe.models!.map(({ model }) => model.split('/').at(-1)),
    );
  expect(effects.mock.calls.map(([request]) => names(request))).toEqual([
    [
      ['harbour', 'workshop'],
      ['kitchen', 'workshop'],
      ['kitchen', 'harbour'],
    ],
  ]);
  const said = (name: string) => cell(name)?.ariaLabel?.replace(/\s/g, ' ');
  expect(said(strong!)).toMatch(/\+1\.50* nats$/);
  await page.getByLabelText('Of which model').selectOptions('harbour');
  await waitFor(() => expect(said(strong!)).toMatch(/−2(\.0+)? nats$/));
  expect(effects).toHaveBeenCalledTimes(1);
});

test('effects on the text say why there are none', async () => {
  const failing = new AmalgamError('NonFinite', 'A value is NaN.', 'Look at the model.');
  const { studio } = await openTies({ toolError: failing });
  await show('Try');
  await page.getByRole('button', { name: 'Generate', exact: true }).click();
  await idle(studio);
  await show('Layers');
  await page.getByLabelText('Metric').selectOptions('effect');
  await expect.element(page.getByText('A value is NaN. Look at the model.')).toBeVisible();
});

test('with six runs the first chart begins above 250 px: below the introduction, and below the result measured', async () => {
  const { studio } = await openStudio();
  for (const method of ['ties', 'dare_ties', 'dare_linear', 'sce', 'breadcrumbs']) {
    await page.getByLabelText('Add a run').selectOptions(method);
  }
  await waitFor(() => expect(document.querySelectorAll('.runs-line > li')).toHaveLength(6));
  const top = () => document.querySelector('.heatmap')?.getBoundingClientRect().top;
  await expect.element(page.getByRole('region', { name: 'Start here' })).toBeVisible();
  await waitFor(() => expect(top()).toBeLessThan(250));
  await page.getByRole('button', { name: 'Merge the sample' }).click();
  await waitFor(() => expect(currentRun(studio.store.getState())?.status).toBe('done'));
  const result = page.getByRole('region', { name: 'Result of the merge' });
  await result.getByRole('button', { name: 'Measure it beside its models' }).click();
  await expect.element(result.getByText(/ than the base/)).toBeVisible();
  await idle(studio);
  expect(top()).toBeLessThan(250);
});
