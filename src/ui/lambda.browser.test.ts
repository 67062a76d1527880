import { afterEach, expect, test } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import type { LambdaReport } from '../reports/importance';
import type { Progress } from '../reports/job';
import type { MergeReport } from '../reports/merge';
import { closeStudio, openStudio } from './open-studio.test.support';
import { fixtureWorker } from './worker.test.fixture';

afterEach(closeStudio);

const searched: LambdaReport = {
  chosen: 0.6,
  curve: [
    { lambda: 0.3, perplexity: 2.41, each: [2.2, 2.64] },
    { lambda: 0.6, perplexity: 2.28, each: [2.1, 2.476] },
    { lambda: 1, perplexity: 2.9, each: [2.5, 3.364] },
  ],
  texts: [
    { id: 'kitchen', calibration: 'its own text', tokens: 2040 },
    { id: 'workshop', calibration: 'its own text', tokens: 2040 },
  ],
  reused: false,
  seconds: 3,
};

const ahead: Progress = {
  phase: 'searching',
  item: 'λ 0.6',
  tensorsDone: 0,
  tensors: 0,
  bytesDone: 0,
  bytes: 0,
  bytesPerSecond: 0,
  secondsLeft: 12,
  stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
  finished: [],
  counted: { done: 3, total: 12, unit: 'values of λ' },
};

test('work ahead shows in the run bar, and the λ that was found as a table', async () => {
  const worker = fixtureWorker();
  let goOn = () => {};
  const waits = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const merge: typeof worker.merge = async (request, onProgress): Promise<MergeReport> => {
    onProgress(ahead);
    await waits;
    return { ...(await worker.merge(request, onProgress)), ahead: { lambda: searched } };
  };
  await openStudio({}, { merge });
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect.element(page.getByText('3 of 12 values of λ')).toBeVisible();
  await expect.element(page.getByRole('progressbar')).toHaveAttribute('aria-valuenow', '25');

  goOn();
  await expect.element(page.getByText(/^Merged in/)).toBeVisible();
  await page.getByRole('button', { name: 'Details', exact: true }).click();
  await expect.element(page.getByRole('row', { name: '0.6 2.280 2.100 2.476' })).toBeVisible();
});

test('the λ that was found reaches the form, from where it is set by one click', async () => {
  const worker = fixtureWorker();
  const merge: typeof worker.merge = async (request, onProgress) => ({
    ...(await worker.merge(request, onProgress)),
    ahead: { lambda: searched },
  });
  const { studio } = await openStudio({}, { merge });
  await page.getByRole('button', { name: /^auto-tune λ/ }).click();
  await expect.element(page.getByText('tuned on the calibration text', { exact: true })).toBeVisible();
  await expect.element(page.getByText(/^Ready:/)).toBeVisible();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect.element(page.getByText('0.60, tuned on the calibration text')).toBeVisible();
  await page.getByRole('button', { name: /^set λ by hand/ }).click();
  expect(studio.store.getState().recipe.parameters.lambda).toBe(0.6);
});

test('a contributor is calibrated on a text of the sample, or on one that is added by keyboard', async () => {
  const given: string[][] = [];
  const { studio } = await openStudio(
    {},
    { addCalibrationText: async (...text) => void given.push(text as string[]) },
  );
  const chosen = () =>
    studio.store.getState().recipe.contributors.map((c) => c.parameters.calibration ?? 'self');
  const method = page.getByRole('combobox', { name: 'Merge method' });
  await method.selectOptions('gram');
  await page
    .getByRole('combobox', { name: 'calibration of kitchen' })
    .selectOptions('kitchen.calibration.txt');
  expect(chosen()).toEqual(['kitchen.calibration.txt', 'self', 'self']);

  const add = page.getByRole('button', { name: 'Add a text: calibration of workshop' });
  await expect.element(add).toHaveAttribute('aria-expanded', 'false');
  (add.element() as HTMLElement).focus();
  await userEvent.keyboard('{Enter}');
  const group = page.getByRole('group', { name: 'Add a text: calibration of workshop' });
  await expect.element(group.getByRole('button', { name: 'Dataset' })).toBeVisible();
  (group.getByRole('button', { name: 'Paste text' }).element() as HTMLElement).focus();
  await userEvent.keyboard('{Enter}Plane with the grain.{Tab}self{Tab}{Enter}');
  // no text is called what stands for the model's own
  const workshop = page.getByRole('combobox', { name: 'calibration of workshop' });
  await expect.element(workshop).toHaveValue('self-2');
  expect(given).toEqual([['self-2', 'Plane with the grain.']]);
  expect(chosen()).toEqual(['kitchen.calibration.txt', 'self', 'self-2']);
  await expect.element(group).not.toBeInTheDocument();

  // it is on the library of the Measure tab too; where it is measured on, the form says so
  studio.store.setState(({ measure }) => ({
    measure: { ...measure, texts: measure.texts.map((t) => ({ ...t, chosen: true })) },
  }));
  await expect.element(page.getByText(/^self-2 is also measured on/)).toBeVisible();
});
