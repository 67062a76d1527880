import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import { closeStudio, idle, openStudio, show, waitFor } from './open-studio.test.support';
import { currentRun } from './state/runs';
import { editSlice, type StudioWorker } from './state/studio';
import { type FixtureOptions, fixtureWorker } from './worker.test.fixture';
import { holding } from './worker-running.test.fixture';

afterEach(closeStudio);

/** Opens the studio at one of its tools, with a fake worker. */
async function open(
  place: 'Difference' | 'LoRA' | 'Collapse' | 'Experts',
  options: FixtureOptions = {},
  change: Partial<StudioWorker> = {},
) {
  const { studio } = await openStudio(options, change);
  await show(place);
  return studio;
}

const button = (name: string) => page.getByRole('button', { name, exact: true });
const cells = () => [...document.querySelectorAll<HTMLElement>('.difference-chart .heat-cell')];
const plain = (text: string | null | undefined) => text?.replace(/[\s\u202f]/g, ' ');

test('a comparison fills the chart tensor by tensor, and says in words what it found', async () => {
  const hold = holding(3);
  const compare = vi.spyOn(fixtureWorker({ hold }), 'compare');
  const studio = await open('Difference', {}, { compare });
  await expect.element(page.getByRole('combobox', { name: 'Base', exact: true })).toHaveValue('samples/base');
  await expect.element(page.getByLabelText('Fine-tuned model')).toHaveValue('samples/workshop');
  await button('Measure difference').click();
  // all cells are there before they are measured
  await waitFor(() => {
    const states = cells().map((c) => c.dataset.state);
    expect(states).toHaveLength(42);
    expect(new Set(states)).toEqual(new Set(['pending', 'measured']));
  });
  await show('Layers');
  const merge = page.getByRole('button', { name: 'Merge', exact: true });
  await expect.element(merge).toHaveAccessibleDescription('The difference of two models is being measured.');
  hold.letGo();
  await idle(studio);
  await show('Difference');
  expect(compare.mock.calls[0]?.[0]).toMatchObject({
    base: 'samples/base',
    finetuned: 'samples/workshop',
    threshold: 1e-6,
    loraAnalysis: true,
    destination: { kind: 'downloads', name: 'compare-base-workshop' },
  });
  expect(cells().every((c) => c.dataset.state === 'measured')).toBe(true);
  await expect.element(page.getByText('56 tensors compared: 56 modified, 0 identical.')).toBeVisible();
  await expect.element(page.getByText(/rope_theta is 10000 and 500000/)).toBeVisible();
  await expect.element(page.getByText('Both have the same tokenizer file.')).toBeVisible();
  await expect.element(page.getByText(/lm_head\.weight: 1\s024\s×\s128 and 1\s030\s×\s128/)).toBeVisible();
  await expect.element(button('Download weight_differences.json')).toBeVisible();
});

test('cells speak the metric that is chosen; a tensor opens with its rows and its spectrum', async () => {
  const studio = await open('Difference');
  await button('Measure difference').click();
  await idle(studio);
  await page.getByRole('radio', { name: 'Changed' }).click();
  const cell = () =>
    document.querySelector<HTMLElement>(
      '.difference-chart [data-name="model.layers.3.mlp.down_proj.weight"]',
    );
  expect(plain(cell()?.ariaLabel)).toMatch(/^layer 3, mlp\.down_proj, \d+\.\d % changed$/);
  cell()?.focus();
  await userEvent.keyboard('{Enter}');
  const inspector = page.getByRole('complementary', { name: 'Inspector' });
  await expect.element(inspector.getByText('Spectrum of Δ')).toBeVisible();
  await expect.element(inspector.getByRole('img', { name: /^Spectrum: 64 singular values/ })).toBeVisible();
  await expect.element(inspector.getByRole('img', { name: /^Norms of 128 rows/ })).toBeVisible();
  await userEvent.keyboard('{ArrowRight}{Enter}');
  expect(studio.store.getState().view.selected).not.toBe('model.layers.3.mlp.down_proj.weight');
  // the table sorts by any figure
  await page.getByRole('button', { name: 'Cosine', exact: true }).click();
  const names = () => [...document.querySelectorAll('.tool-table .table-row')].map((r) => r.textContent);
  const tensors = studio.store.getState().tools.jobs.compare?.report?.tensors ?? [];
  const largest = Math.max(...tensors.map((t) => t.cosine));
  const first = tensors
    .filter((t) => t.cosine === largest)
    .map((t) => t.name.replace(/^model\.|\.weight$/g, ''));
  await waitFor(() => expect(first.some((name) => names()[0]?.includes(name))).toBe(true));
});

test('what a tool has kept is counted in the top bar as soon as it ends', async () => {
  const studio = await open('Difference', { engine: { storage: { available: true, memoryBytes: 1e9 } } });
  const kept = (used: string) => page.getByRole('button', { name: new RegExp(`^Storage: ${used}B of 1`) });
  await expect.element(kept('0.')).toBeVisible();
  await button('Measure difference').click();
  await idle(studio);
  await expect.element(kept('88.+k')).toBeVisible();
});

test('a comparison can be stopped; what was measured stays, and no file is kept', async () => {
  const studio = await open('Difference', { hold: holding(3) });
  await button('Measure difference').click();
  await waitFor(() => expect(studio.store.getState().tools.jobs.compare?.finished.length).toBeGreaterThan(1));
  await button('Stop').click();
  await idle(studio);
  await expect.element(page.getByText(/^Stopped after \d+\stensors\./)).toBeVisible();
  expect(studio.store.getState().tools.jobs.compare?.saved).toBeNull();
});

test('models that cannot be compared say why; without storage there are no files but a comparison', async () => {
  const toolError = new AmalgamError(
    'NothingToCompare',
    'No tensor is in both.',
    'Choose two models of one family.',
  );
  const studio = await open('Difference', { toolError });
  await button('Measure difference').click();
  await idle(studio);
  await expect.element(page.getByText('No tensor is in both.')).toBeVisible();
  await expect.element(page.getByText('Choose two models of one family.')).toBeVisible();
});

test('without storage a comparison has no files, and says so before it runs', async () => {
  const compare = vi.spyOn(fixtureWorker(), 'compare');
  const storage = { available: false, why: 'Private windows keep nothing.' };
  const studio = await open('Difference', { engine: { storage } }, { compare });
  editSlice(studio, 'output', { kind: 'downloads' });
  await expect.element(page.getByText(/The comparison works without/)).toBeVisible();
  await button('Measure difference').click();
  await idle(studio);
  expect(compare.mock.calls[0]?.[0].destination).toBeUndefined();
  await expect.element(page.getByText(/56 tensors compared/)).toBeVisible();
});

test('identical models: nothing to do, in words', async () => {
  const same = fixtureWorker();
  const compare: StudioWorker['compare'] = async (request, onProgress) => {
    const report = await same.compare(request, onProgress);
    return { ...report, total: { ...report.total, modified: 0, identical: report.total.compared } };
  };
  const studio = await open('Difference', {}, { compare });
  await button('Measure difference').click();
  await idle(studio);
  await expect.element(page.getByText(/^The two are the same in every tensor both have/)).toBeVisible();
});

test('a LoRA is extracted by rank, energy or size; its error and modules are shown', async () => {
  const extractLora = vi.spyOn(fixtureWorker(), 'extractLora');
  const studio = await open('LoRA', {}, { extractLora });
  await page.getByRole('radio', { name: 'Two models' }).click();
  await page.getByLabelText('Fine-tuned model').selectOptions('samples/base+samples/kitchen');
  await button('Extract LoRA').click();
  await idle(studio);
  expect(extractLora.mock.calls[0]?.[0]).toMatchObject({
    base: 'samples/base',
    finetuned: 'samples/base+samples/kitchen',
    rank: { kind: 'rank', rank: 8 },
    include: [],
    embeddings: 'save',
    destination: { kind: 'downloads', name: 'lora-base-kitchen' },
  });
  await expect.element(page.getByText('4.10e−7')).toBeVisible();
  await expect.element(button('Download adapter_model.safetensors')).toBeVisible();
  await page.getByRole('row', { name: /layers\.0\.mlp\.down_proj/ }).click();
  await expect.element(page.getByRole('img', { name: /^Spectrum: .*rank 8/ })).toBeVisible();

  await page.getByRole('radio', { name: 'Energy' }).click();
  await page.getByLabelText('share kept').fill('1.5');
  await userEvent.keyboard('{Enter}');
  await expect
    .element(button('Extract LoRA'))
    .toHaveAccessibleDescription('Share kept: a number above 0 and at most 1.');
  await page.getByLabelText('share kept').fill('0.9');
  await userEvent.keyboard('{Enter}');
  await page.getByText('Modules, embeddings, dtype').click();
  await page.getByLabelText('Only modules').fill('q_proj, v_proj');
  await button('Extract LoRA').click();
  await idle(studio);
  expect(extractLora.mock.calls[1]?.[0]).toMatchObject({
    rank: { kind: 'energy', share: 0.9 },
    include: ['q_proj', 'v_proj'],
  });
});

test('one LoRA is inspected, and written at the rank that keeps what is wanted', async () => {
  const [measureLora, reshapeLora] = [
    vi.spyOn(fixtureWorker(), 'measureLora'),
    vi.spyOn(fixtureWorker(), 'reshapeLora'),
  ];
  const studio = await open('LoRA', {}, { measureLora, reshapeLora });
  await page.getByLabelText('LoRA', { exact: true }).selectOptions('harbour');
  await button('Inspect').click();
  await idle(studio);
  expect(measureLora.mock.calls[0]?.[0]).toMatchObject({ lora: 'samples/base+samples/harbour' });
  await expect.element(page.getByText('LoRA, r 4, α 8')).toBeVisible();
  await expect
    .element(page.getByRole('img', { name: /each rank keeps, of 4.ranks: Rank 2 keeps 90/ }))
    .toBeVisible();
  await button('Write LoRA').click();
  await idle(studio);
  expect(reshapeLora.mock.calls[0]?.[0]).toMatchObject({ rank: null, scale: 1, format: 'peft' });
  await page.getByRole('button', { name: /^95.*rank 3$/ }).click();
  await page.getByLabelText('Format').selectOptions('MLX');
  await button('Write LoRA').click();
  await idle(studio);
  expect(reshapeLora.mock.calls[1]?.[0]).toMatchObject({
    ...{ lora: 'samples/base+samples/harbour', rank: { kind: 'rank', rank: 3 }, format: 'mlx' },
  });
});

test('several LoRAs are combined in Merge, which writes a LoRA then', async () => {
  const studio = await open('LoRA');
  await page.getByRole('radio', { name: 'Several LoRAs' }).click();
  await button('Combine in Merge').click();
  await expect.element(page.getByRole('combobox', { name: 'Output', exact: true })).toHaveValue('adapter');
  expect(studio.store.getState().recipe.output).toBe('adapter');
});

test('choices that cannot be meant are refused before anything runs', async () => {
  const studio = await open('Collapse');
  await page.getByLabelText('how many to remove').fill('6');
  await userEvent.keyboard('{Enter}');
  await expect.element(button('Collapse')).toHaveAccessibleDescription(/Cannot remove 6 layers of 6/);
  await page.getByRole('radio', { name: 'No target' }).click();
  await expect.element(button('Collapse')).toHaveAccessibleDescription(/needs to know how much is to go/);
  await page.getByLabelText('How layers are chosen').selectOptions('Greedy search');
  await page.getByLabelText('blocks of').fill('9');
  await userEvent.keyboard('{Enter}');
  await expect.element(button('Collapse')).toHaveAccessibleDescription(/No block of 9 layers fits/);
  await page.getByLabelText('blocks of').fill('1');
  await userEvent.keyboard('{Enter}');
  await expect
    .element(button('Measure layers'))
    .toHaveAccessibleDescription('Blocks of: a whole number from 2.');
  expect(studio.store.getState().tools.jobs.collapse).toBeUndefined();
});

test('a model opened from the tab leaves the recipe as it is', async () => {
  const studio = await open('Difference');
  const { recipe } = studio.store.getState();
  await page.getByRole('button', { name: 'Open another model…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Open models' });
  await dialog.getByRole('tab', { name: /sample/i }).click();
  await expect
    .element(dialog.getByRole('button', { name: 'Opened: workshop' }))
    .toHaveAccessibleDescription('It is open.');
  await dialog.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'Swap the two models' }).click();
  await expect.element(page.getByLabelText('Fine-tuned model')).toHaveValue('samples/base');
  expect(studio.store.getState().recipe).toBe(recipe);
});

test('what the last merge has written is opened by choosing it', async () => {
  const openLocal = vi.spyOn(fixtureWorker(), 'openLocal');
  const studio = await open('Difference', {}, { openLocal });
  await show('Layers');
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect.element(page.getByText(/^Merged in/)).toBeVisible();
  await show('Difference');
  const name = currentRun(studio.store.getState())?.destination.name ?? '';
  await page.getByLabelText('Fine-tuned model').selectOptions(name);
  await expect.element(page.getByLabelText('Fine-tuned model')).toHaveValue(name);
  const paths = openLocal.mock.calls[0]?.[0].map((f) => f.path);
  expect(paths).toContain(`${name}/model.safetensors`);
  expect(paths).toContain(`${name}/config.json`);
});

test('both fit a phone', async () => {
  const studio = await open('Difference');
  await button('Measure difference').click();
  await idle(studio);
  await page.viewport(390, 844);
  await expect.element(page.getByLabelText('Place')).toBeVisible();
  const overflows = () => {
    const screen = document.querySelector<HTMLElement>('.tool-screen');
    return screen ? screen.scrollWidth - screen.clientWidth : Number.NaN;
  };
  expect(overflows()).toBe(0);
  await show('Collapse');
  await button('Measure layers').click();
  await idle(studio);
  expect(overflows()).toBe(0);
});

test('experts begin with what the sample reads; of other models it says what to write', async () => {
  const { sampleTexts } = fixtureWorker();
  const texts = (await sampleTexts()).filter(({ name }) => name !== 'workshop');
  await open('Experts', {}, { sampleTexts: async () => texts });
  const recipe = page.getByRole('textbox', { name: 'Recipe of experts as YAML' });
  const [kitchen] = texts.find(({ name }) => name === 'kitchen')!.text.split('\n');
  await expect.element(recipe).toHaveValue(expect.stringContaining(`- ${JSON.stringify(kitchen)}`));
  // no text is known of it
  await expect
    .element(recipe)
    .toHaveValue(expect.stringMatching(/samples\/workshop\n {4}positive_prompts: \[\]/));
  await expect.element(page.getByText(/has no positive_prompts/)).toBeVisible();
  await expect.element(button('Plan')).toHaveAttribute('aria-disabled', 'true');
});
