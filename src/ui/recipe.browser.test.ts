import { afterEach, expect, test } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { closeStudio, openStudio, openTies, waitFor } from './open-studio.test.support';
import { ACTIONS, type Action, allActions } from './state/actions';
import { buildRecipe } from './state/built-recipe';
import { methodOf, type Studio, setView } from './state/studio';

afterEach(closeStudio);

async function open(): Promise<Studio> {
  const { studio } = await openTies();
  await waitFor(() => expect(studio.store.getState().deltaStatistics.status).toBe('ready'));
  setView(studio, { metric: 'trimmed' });
  return studio;
}

const recipeOf = (studio: Studio) => {
  const { recipe, models } = studio.store.getState();
  return buildRecipe(recipe, models, methodOf(recipe));
};
const cell = (name: string) =>
  document.querySelector<HTMLElement>(`.heat-cell[data-name="${name}"]`)?.ariaLabel?.replace(/\s/g, ' ');
const down = (layer: number) => cell(`model.layers.${layer}.mlp.down_proj.weight`);

test('a density drawn over the layers is followed by the predicted chart, point by point', async () => {
  const studio = await open();
  await page.getByRole('button', { name: 'Set density of kitchen per layer' }).click();
  const last = page.getByRole('slider', { name: 'density of kitchen, point 2 of 2' });
  await expect.element(last).toHaveAttribute('aria-valuetext', '0.20 at layer 5');
  (last.element() as HTMLElement).focus();
  await userEvent.keyboard('{Shift>}{ArrowUp}{ArrowUp}{ArrowUp}{/Shift}');
  await expect.element(last).toHaveAttribute('aria-valuenow', '0.5');
  expect(recipeOf(studio).models?.[0]?.parameters.density).toEqual([0.2, 0.5]);
  expect(recipeOf(studio).amalgam.gradientEnds).toBe('nearest');
  await waitFor(() => expect(down(0)).toBe('layer 0, mlp.down_proj, 80.0 % trimmed'));
  await waitFor(() => expect(down(5)).toBe('layer 5, mlp.down_proj, 50.0 % trimmed'));
  await userEvent.keyboard('{ArrowLeft}');
  expect((document.activeElement as HTMLElement).dataset.point).toBe('0');
});

test('points are added, removed, set and dragged; one value comes back', async () => {
  const studio = await open();
  const density = () => studio.store.getState().recipe.contributors[0]?.parameters.density;
  await page.getByRole('button', { name: 'Set density of kitchen per layer' }).click();
  (page.getByRole('slider', { name: 'density of kitchen, point 1 of 2' }).element() as HTMLElement).focus();
  await userEvent.keyboard('{Home}');
  expect(density()).toEqual([0, 0.2]);
  await page.getByRole('button', { name: 'More points: density of kitchen' }).click();
  await page.getByRole('button', { name: 'More points: density of kitchen' }).click();
  expect(density()).toEqual([0, 0.05, 0.1, 0.15, 0.2]);
  (page.getByRole('slider', { name: 'density of kitchen, point 4 of 5' }).element() as HTMLElement).focus();
  await userEvent.keyboard('{Delete}');
  expect(density()).toEqual([0, 0.05, 0.1, 0.2]);
  const plot = document.querySelector<HTMLElement>('.curve-plot')!;
  const point = document.querySelector<HTMLElement>('.curve-point[data-point="1"]')!;
  await userEvent.dragAndDrop(point, plot, { targetPosition: { x: plot.clientWidth / 2, y: 0 } });
  await waitFor(() => expect((density() as number[])[1]).toBeGreaterThan(0.9));
  await page.getByRole('button', { name: 'Set density of kitchen per layer' }).click();
  expect(typeof density()).toBe('number');
});

test('LiNeS draws λ from a share in the first layer up to what it was in the last', async () => {
  const studio = await open();
  await page.getByRole('button', { name: 'Set λ per layer' }).click();
  const last = Number(studio.store.getState().recipe.parameters.lambda?.[1 as never] ?? 1);
  await page.getByRole('button', { name: 'LiNeS' }).click();
  const models = studio.store.getState().plan.contributors.length;
  expect(models).toBeGreaterThan(1);
  const [first, end] = studio.store.getState().recipe.parameters.lambda as number[];
  expect(end).toBe(last);
  expect(first).toBeCloseTo(last / models, 2);
});

test('what curves mean outside the layers is chosen where there is a curve', async () => {
  const studio = await open();
  const ends = page.getByLabelText('Curves outside the layers');
  expect(ends.query()).toBeNull();
  await page.getByRole('button', { name: 'Set weight of harbour per layer' }).click();
  await ends.selectOptions('mergekit');
  expect(recipeOf(studio).amalgam.gradientEnds).toBeUndefined();
});

test('a group of modules switched off is left out of plan and chart', async () => {
  const studio = await open();
  await page.getByRole('switch', { name: 'Merge MLP', exact: true }).click();
  expect(recipeOf(studio).amalgam.exclude).toEqual(['mlp.']);
  await waitFor(() => expect(down(3)).toBe('layer 3, mlp.down_proj, copied unchanged'));
  await expect.element(page.getByText(/18.tensors of 56 stay as in the base/)).toBeVisible();
  await page.getByRole('complementary', { name: 'Recipe' }).getByText('MLP', { exact: true }).click();
  await page.getByRole('switch', { name: 'Merge mlp.down_proj' }).click();
  expect(recipeOf(studio).amalgam.exclude).toEqual(['mlp.gate_proj', 'mlp.up_proj']);
  await waitFor(() => expect(down(3)).toBe('layer 3, mlp.down_proj, 80.0 % trimmed'));
});

test('a pattern of one’s own is added and taken away', async () => {
  const studio = await open();
  await page.getByLabelText('Pattern of tensor names').fill('layers.0.');
  await userEvent.keyboard('{Enter}');
  expect(recipeOf(studio).amalgam.exclude).toEqual(['layers.0.']);
  await waitFor(() => expect(down(0)).toBe('layer 0, mlp.down_proj, copied unchanged'));
  expect(down(1)).toBe('layer 1, mlp.down_proj, 80.0 % trimmed');
  await page.getByRole('button', { name: 'Remove the pattern layers.0.' }).click();
  expect(recipeOf(studio).amalgam.exclude).toBeUndefined();
});

test('contributors change places by keyboard and by drag', async () => {
  const studio = await open();
  const order = () => studio.store.getState().recipe.contributors.map((c) => c.ref.replace('samples/', ''));
  (page.getByRole('button', { name: 'Place of kitchen, 1 of 3' }).element() as HTMLElement).focus();
  await userEvent.keyboard('{ArrowDown}');
  expect(order()).toEqual(['harbour', 'kitchen', 'workshop']);
  await waitFor(() => expect(document.activeElement?.ariaLabel).toBe('Place of kitchen, 2 of 3'));
  await userEvent.keyboard('{ArrowDown}{ArrowDown}');
  expect(order()).toEqual(['harbour', 'workshop', 'kitchen']);
  const grip = page.getByRole('button', { name: 'Place of kitchen, 3 of 3' }).element();
  const first = document.querySelector<HTMLElement>('.cards .card')!;
  await userEvent.dragAndDrop(grip, first, { targetPosition: { x: 20, y: 4 } });
  await waitFor(() => expect(order()[0]).toBe('kitchen'));
});

test('every action is done by name, or says why not; a name or a key is that of one', async () => {
  const { studio } = await openStudio();
  const names = allActions.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const keys = Object.values<Action>(ACTIONS).flatMap(({ keys = [] }) =>
    keys.map((key) => JSON.stringify(key)),
  );
  expect(new Set(keys).size).toBe(keys.length);
  const open = async (words: string) => {
    await userEvent.keyboard('{Control>}k{/Control}');
    await page.getByRole('combobox', { name: 'Action' }).fill(words);
  };
  await open('und');
  await expect
    .element(page.getByRole('option', { name: /^Undo Nothing to undo/ }))
    .toHaveAttribute('aria-disabled', 'true');
  await userEvent.keyboard('{Enter}');
  await expect.element(page.getByRole('dialog')).toBeVisible();
  await userEvent.keyboard('{Escape}');
  await open('yaml');
  await userEvent.keyboard('{Enter}');
  const text = page.getByRole('textbox', { name: 'Recipe as YAML' });
  await expect.element(text).toBeVisible();
  // what cannot be read stays, also while the form is looked at
  await text.fill('merge_methd: ties');
  await expect.element(page.getByText('Write “merge_method” for “merge_methd”.')).toBeVisible();
  await page.getByRole('radio', { name: 'Form' }).click();
  await page.getByRole('radio', { name: 'YAML' }).click();
  await expect.element(text).toHaveValue('merge_methd: ties');
  await open('go to merge');
  await userEvent.keyboard('{ArrowDown}{Enter}');
  expect(studio.store.getState().view.tab).toBe('try');
  await open('go to collapse');
  await userEvent.keyboard('{Enter}');
  await open('merge this');
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(studio.store.getState().view.tab).toBe('layers'));
  await expect.element(page.getByText(/^Merged in/)).toBeVisible();
  await open('layers cosine');
  await userEvent.keyboard('{Enter}');
  expect(studio.store.getState().view).toMatchObject({ tab: 'layers', metric: 'cosine' });
});

test('above a recipe that mergekit refuses the text says so', async () => {
  await openStudio();
  await page.getByRole('radio', { name: 'YAML' }).click();
  await expect.element(page.getByText('As mergekit reads it')).toBeVisible();
  await page.getByRole('radio', { name: 'Form' }).click();
  await page.getByRole('combobox', { name: 'Merge method' }).selectOptions('gram');
  await page.getByRole('radio', { name: 'YAML' }).click();
  await expect.element(page.getByText('mergekit refuses this recipe')).toBeVisible();
  await expect.element(page.getByText('Amalgam merges it, mergekit does not')).toBeVisible();
});
