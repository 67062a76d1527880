import { openDB } from 'idb';
import { afterEach, expect, test, vi } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { AmalgamError } from '../errors';
import type { BlindTest } from '../reports/blind-test';
import type {
  AnswersRequest,
  GenerateReport,
  GenerateRequest,
  LivePerplexityRequest,
  MemoryRequest,
  RunningProgress,
} from '../reports/evaluate';
import { closeStudio, idle, openTies, show, waitFor } from './open-studio.test.support';
import type { MeasureText } from './state/measure-state';
import { partStretches } from './state/measure-texts';
import { editRecipe } from './state/studio';
import { fixtureMemory, holding } from './worker-running.test.fixture';

afterEach(closeStudio);

const contributorsOf = ({ target }: GenerateRequest) =>
  'recipe' in target ? target.recipe.models?.length : undefined;

test('a text that is being written goes on with the changed recipe, shows where, and is then written again, uncanceled', async () => {
  const [steered, seen] = [holding(0), holding(0)];
  const asked: GenerateRequest[] = [];
  const generate = async (request: GenerateRequest, tell: (progress: RunningProgress) => void) => {
    asked.push(request);
    const progress = { phase: 'running' as const, done: 1, total: 2, rate: 20, secondsLeft: null };
    const text = ` text ${asked.length}`;
    tell({ ...progress, text });
    // base first, then the recipe
    if (asked.length === 2) {
      await steered.gone;
      tell({ ...progress, turnSeconds: 0.01 });
      await seen.gone;
    }
    const counted = { promptTokens: 2, ids: [1], tokens: [{ text, probability: 0.5 }], tokensPerSecond: 20 };
    const report: GenerateReport = {
      ...{ text, ...counted, ended: 'length', engine: 'cpu', adapter: 'CPU', seconds: 0.1, peakBytes: 1 },
    };
    return report;
  };
  const steer = vi.fn(async () => {
    steered.letGo();
    return true;
  });
  const cancel = vi.fn(async () => {});
  const { studio } = await openTies({}, { generate, steer, cancel });
  await show('Try');
  await page.getByRole('textbox', { name: 'Prompt' }).click();
  await userEvent.keyboard('{Control>}{Enter}{/Control}');
  await waitFor(() => expect(asked).toHaveLength(2));
  editRecipe(studio, (recipe) => ({ ...recipe, contributors: recipe.contributors.slice(1) }));
  await expect.element(page.getByRole('img', { name: 'the recipe changed here' })).toBeVisible();
  await expect.element(page.getByText(/the recipe changed 1\stime on the way/)).toBeVisible();
  expect(steer).toHaveBeenCalledTimes(1);
  seen.letGo();
  await waitFor(() => expect(asked).toHaveLength(3));
  await idle(studio);
  expect(asked.map(contributorsOf)).toEqual([undefined, 3, 2]);
  expect(asked.map(({ live }) => live)).toEqual([false, true, true]);
  expect(cancel).not.toHaveBeenCalled();
  const text = () => document.querySelector('[aria-label^="A "] .written-text')?.textContent;
  await waitFor(() => expect(text()).toMatch(/^Recipe: text\s3$/));
  await expect.element(page.getByRole('img', { name: 'the recipe changed here' })).not.toBeInTheDocument();
});

const [PROMPTS, ANSWERS] = [
  ['Job:', 'Fault:', 'Story:'],
  [
    [' of base 1', ' of base 2', ' of both'],
    [' of merge 1', ' of merge 2', ' of both'],
  ],
];

test('the memory of the texts stands beside the button before they are written, and how weights are kept is chosen there', async () => {
  const asked: MemoryRequest[] = [];
  const memoryOf = async (request: MemoryRequest) => {
    asked.push(request);
    return {
      ...fixtureMemory,
      ...(request.weights === '8-bit' && { eightBits: true as const, bytes: 1.7e9 }),
    };
  };
  const { studio } = await openTies({}, { memoryOf });
  const generate = vi.spyOn(studio.worker, 'generate');
  await show('Try');
  const words =
    /^At most 2.90.GB of memory for 120.tokens: weights 2.50.GB of 6.00.GB that may stay, LoRA 200.MB, context 100.MB/;
  await expect.element(page.getByText(words)).toBeVisible();
  expect(asked.at(-1)).toMatchObject({
    targets: [{ model: 'samples/base' }, { recipe: { mergeMethod: 'ties' } }],
    ...{ against: { model: 'samples/base' }, weights: 'auto', promptTokens: 256, maxTokens: 60 },
  });
  // another weight takes no other memory
  const before = asked.length;
  editRecipe(studio, (recipe) => ({ ...recipe, parameters: { ...recipe.parameters, lambda: 0.7 } }));
  await waitFor(() => expect(studio.store.getState().plan.status).toBe('ready'));
  await page.getByRole('combobox', { name: 'Weights' }).selectOptions('8-bit');
  await expect.element(page.getByText(/^At most 1.70.GB .*weights at 8 bits/)).toBeVisible();
  expect(asked).toHaveLength(before + 1);
  await page.getByRole('button', { name: 'Generate' }).click();
  await waitFor(() => expect(generate).toHaveBeenCalledTimes(2));
  expect(generate.mock.calls.map(([{ weights }]) => weights)).toEqual(['8-bit', '8-bit']);
});

test('two models are voted on without their names, by keys; the votes are counted, exported and still there later', async () => {
  // the first answer is that of the first model, then of the second; chance is asked once a prompt
  const chances = [0.1, 0.9, 0.9];
  const random = vi.spyOn(Math, 'random');
  const answers = vi.fn(async (_: AnswersRequest) => {
    for (const chance of chances) random.mockReturnValueOnce(chance);
    return ANSWERS;
  });
  await openTies({}, { answers });
  await show('Try');
  await page.getByRole('button', { name: 'Blind test…' }).click();
  const field = page.getByRole('textbox', { name: 'Prompts, one a line' });
  await field.fill(`${PROMPTS.join('\n')}\n\n`);
  await page.getByRole('button', { name: 'Begin' }).click();
  await expect.element(page.getByText(/^Prompt 1 of 3/)).toBeVisible();
  random.mockRestore();
  expect(answers.mock.calls[0]![0]).toMatchObject({
    prompts: PROMPTS,
    targets: [{ model: 'samples/base' }, { recipe: { mergeMethod: 'ties' } }],
  });
  const shown = () => [...document.querySelectorAll('.written-text')].map((own) => own.textContent);
  expect(shown()).toEqual(['Job: of base 1', 'Job: of merge 1']);
  expect(document.querySelector('.written')?.textContent).not.toMatch(/TIES|samples/);
  await userEvent.keyboard('1');
  await expect.element(page.getByText(/^Prompt 2 of 3/)).toBeVisible();
  expect(shown()).toEqual(['Fault: of merge 2', 'Fault: of base 2']);
  await userEvent.keyboard('2');
  // both answers to the third are the same
  const words =
    /^Cannot be told apart after 3: base 2, TIES.* 0, neither 1\. The share of base is 15\.8.% to 100\.0.%/;
  await expect.element(page.getByText(words)).toBeVisible();
  await expect.element(page.getByText(/votes 0.:.2/)).toBeVisible();

  const saved = await openDB('amalgam-evaluations');
  const [kept] = (await saved.getAll('tests')) as BlindTest[];
  expect(kept!.prompts.map(({ vote, first }) => [vote, first])).toEqual([
    [0, 0],
    [0, 1],
    ['neither', 1],
  ]);
  const files: Blob[] = [];
  const urls = vi.spyOn(URL, 'createObjectURL').mockImplementation((file) => {
    files.push(file as Blob);
    return 'blob:none';
  });
  await page.getByRole('button', { name: 'Export as JSON' }).click();
  urls.mockRestore();
  expect(JSON.parse(await files[0]!.text())).toMatchObject({
    ...kept,
    outcome: { wins: [2, 0], preferred: null },
  });

  await openTies();
  await show('Try');
  await expect.element(page.getByText(/votes 0.:.2/)).toBeVisible();
  await saved.clear('tests');
  saved.close();
});

test('once a text was generated the perplexity of the chosen texts follows the recipe, and what was stopped is measured again', async () => {
  const asked: LivePerplexityRequest[] = [];
  const livePerplexity = async (request: LivePerplexityRequest) => {
    asked.push(request);
    if (asked.length === 2) throw new AmalgamError('Canceled', 'Canceled.', 'Again.');
    const change = 1 - (request.recipe.parameters.lambda as number);
    return [0, 0.1, 0.2, 0.3].map((more) => ({
      loss: 64 * (1 + more - change * (0.1 + more / 10)),
      tokens: 64,
    }));
  };
  const { studio } = await openTies({}, { livePerplexity });
  await show('Try');
  await expect.element(page.getByText(/Measured once a text is generated/)).toBeVisible();
  expect(asked).toHaveLength(0);
  await page.getByRole('button', { name: 'Generate' }).click();
  const lines = () => [...document.querySelectorAll('.course-line')].map((own) => own.textContent);
  const names = ['common', 'kitchen', 'harbour', 'workshop'];
  await waitFor(() =>
    expect(lines()).toEqual(names.map((name) => `${name}${Math.exp(1.15).toFixed(2)}±\u00a00.65`)),
  );
  // kitchen was stopped, and its turn has come again
  const [common, kitchen] = studio.store.getState().measure.texts;
  const tuned = (text: MeasureText) => partStretches(text, 'quick', 'tuning');
  expect(asked.slice(0, 3).map(({ stretches }) => stretches)).toEqual(
    [common!, kitchen!, kitchen!].map(tuned),
  );
  expect(asked).toHaveLength(5);
  // what Measure reports of is another part
  for (const one of asked[0]!.stretches) expect(partStretches(common!, 'quick')).not.toContain(one);

  editRecipe(studio, (recipe) => ({ ...recipe, parameters: { ...recipe.parameters, lambda: 0.7 } }));
  // the mean of the blocks’ differences is −0.0345, their standard error 0.00194, and t for 3 degrees 3.18
  const value = Math.exp(1.15 - 0.0345).toFixed(2);
  await waitFor(() =>
    expect(lines()).toEqual(names.map((name) => `${name}${value}\u22123.4\u00a0±\u00a00.6\u00a0%`)),
  );

  // where texts do not follow, numbers do not either: they come with the next text
  await idle(studio);
  await page.getByRole('checkbox', { name: 'follow the sliders' }).click();
  const generate = vi.spyOn(studio.worker, 'generate');
  const before = asked.length;
  editRecipe(studio, (recipe) => ({ ...recipe, parameters: { ...recipe.parameters, lambda: 0.5 } }));
  await waitFor(() => expect(studio.store.getState().plan.status).toBe('ready'));
  expect(asked).toHaveLength(before);
  await page.getByRole('button', { name: 'Generate' }).click();
  await waitFor(() => expect(asked).toHaveLength(before + 4));
  expect(generate).toHaveBeenCalled();
});
