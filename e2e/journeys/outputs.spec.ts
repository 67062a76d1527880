/** The other outputs: GGUF beside a merge, two LoRAs made one, a model converted without a merge. */
import { readFileSync } from 'node:fs';
import { type FakeHub, sampleModels, startFakeHub } from '../fake-hub';
import { hasLlama, llama } from '../llama-cpp';
import { HUB_CDN_PORT, HUB_PORT } from './addresses';
import { readSafetensors } from './merged-folder';
import {
  downloaded,
  expect,
  merge,
  openSample,
  pointAtFakeHub,
  readJson,
  SAMPLES,
  show,
  test,
} from './studio';

let hub: FakeHub;
test.beforeEach(async () => {
  hub = await startFakeHub({ models: sampleModels(SAMPLES), port: HUB_PORT, cdnPort: HUB_CDN_PORT });
});
test.afterEach(() => hub.close());

/** The text that llama.cpp goes on with, a token at a time the likeliest. */
function continued(file: string, prompt: string, count: number): number[] {
  const model = llama().open(file);
  try {
    const ids = model.tokenize(prompt, true);
    for (let i = 0; i < count; i++) {
      const row = model.logits(ids).slice(-model.vocabulary);
      ids.push(row.indexOf(Math.max(...row)));
    }
    return ids.slice(-count);
  } finally {
    model.close();
  }
}

test('the sample is also written as GGUF, a model is converted without a merge, and llama.cpp goes on with a text', async ({
  page,
}) => {
  await openSample(page);
  await show(page, 'Files');
  await page.getByRole('button', { name: 'How do their changes fit together?' }).click();
  await expect(page.getByText(/^From the base kitchen moved/)).toHaveText(
    /what both changed most \(50\s%\sby chance\).*; sampled from 8\stensors, /,
  );
  await page.getByLabel('GGUF for llama.cpp').selectOption('Q4_K_M');
  await merge(page);
  await show(page, 'Files');
  await expect(page.getByRole('button', { name: 'Download model.safetensors' })).toBeVisible();
  const file = await downloaded(page, /^Download .*-Q4_K_M\.gguf$/);
  expect(readFileSync(file.path).subarray(0, 4).toString()).toBe('GGUF');
  // what comes next has the real name
  await expect(page.getByRole('region', { name: 'llama.cpp: what to type' })).toContainText(file.name);
  await expect(page.getByRole('region', { name: 'transformers: what to type' })).toBeVisible();
  if (hasLlama) expect(new Set(continued(file.path, 'In the kitchen', 12)).size).toBeGreaterThan(1);

  for (const name of ['kitchen', 'harbour']) {
    await page.getByRole('button', { name: `Remove ${name}` }).click();
  }
  await page.getByRole('combobox', { name: 'Merge method' }).selectOption('passthrough');
  await page.getByLabel('GGUF for llama.cpp').selectOption('F32');
  await page.getByLabel('GGUF only').check();
  await page.getByRole('button', { name: 'Merge', exact: true }).click();
  const { path } = await downloaded(page, /^Download .*-F32\.gguf$/);
  await expect(page.getByRole('button', { name: 'Download model.safetensors' })).toHaveCount(0);
  expect(readFileSync(path).length).toBeGreaterThan(4 * 1_238_656);
  if (hasLlama) expect(continued(path, 'The saw', 8)).toHaveLength(8);
});

test('two LoRAs of the Hub become a LoRA, without the weights of their base', async ({ page }) => {
  await openSample(page);
  for (const name of ['kitchen', 'harbour', 'workshop']) {
    await page.getByRole('button', { name: `Remove ${name}` }).click();
  }
  await page.getByRole('button', { name: 'change' }).first().click();
  await page.getByRole('tab', { name: 'Hub' }).click();
  await pointAtFakeHub(page);
  await page.getByLabel('Search the Hub').fill('base');
  await page.getByRole('button', { name: 'Use as base: amalgam/base' }).click();
  for (const name of ['kitchen', 'harbour']) {
    await page.getByRole('button', { name: `Add: amalgam/${name}` }).click();
    await expect(page.getByRole('button', { name: `Added: amalgam/${name}` }).first()).toBeVisible();
  }
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('combobox', { name: 'Merge method' }).selectOption('task_arithmetic');
  await show(page, 'Files');
  await page.getByRole('combobox', { name: 'Output', exact: true }).selectOption('adapter');
  await expect(page.getByLabel('Combination')).toHaveValue('cat');
  await page.getByLabel('GGUF for llama.cpp').selectOption('F16');
  const before = hub.requests.length;
  await merge(page);
  await show(page, 'Files');
  const asked = hub.requests.slice(before).map(({ path }) => path);
  expect(asked.some((path) => path.includes('kitchen'))).toBe(true);
  // the plan of before may still read its small files
  expect(asked.filter((path) => /amalgam\/base\/.*\.safetensors/.test(path))).toEqual([]);
  const { path } = await downloaded(page, /^Download adapter_model\.safetensors$/);
  const { tensors } = readSafetensors(readFileSync(path));
  const shapes = [...tensors].filter(([name]) => name.endsWith('lora_A.weight')).map(([, t]) => t.shape[0]);
  const ranks = ['kitchen', 'harbour'].map(
    (name) => (readJson(SAMPLES, name, 'adapter_config.json') as { r: number }).r,
  );
  // exact: the ranks add up
  expect(new Set(shapes)).toEqual(new Set([ranks[0]! + ranks[1]!]));
  await expect(page.getByRole('region', { name: 'PEFT: what to type' })).toBeVisible();
  // and as llama.cpp reads it
  const gguf = await downloaded(page, /^Download .*-F16\.gguf$/);
  expect(readFileSync(gguf.path).subarray(0, 4).toString()).toBe('GGUF');
  await expect(page.getByRole('region', { name: 'llama.cpp: what to type' })).toContainText(
    `--lora ${gguf.name}`,
  );
});

test('any merge becomes a LoRA of its base, and says what it keeps', async ({ page }) => {
  await openSample(page);
  await page.getByRole('combobox', { name: 'Merge method' }).selectOption('ties');
  await show(page, 'Files');
  await page.getByRole('combobox', { name: 'Output', exact: true }).selectOption('adapter');
  // one contributor is a whole model
  await expect(page.getByLabel('Combination')).toHaveValue('merged_svd');
  await page.getByRole('combobox', { name: 'Keep', exact: true }).selectOption('0.9');
  await merge(page);
  await show(page, 'Files');
  await expect(page.getByText(/^At ranks \d+ to \d+ the LoRA keeps 9\d\.\d/)).toBeVisible();
  const { path } = await downloaded(page, /^Download adapter_model\.safetensors$/);
  const { tensors } = readSafetensors(readFileSync(path));
  expect([...tensors.keys()].filter((name) => name.endsWith('lora_A.weight')).length).toBe(42);
  await page
    .getByRole('combobox', { name: 'Keep', exact: true })
    .selectOption({ label: 'what a rank keeps' });
  await page.getByLabel('Rank of the LoRA').fill('1');
  await page.keyboard.press('Enter');
  await merge(page);
  await show(page, 'Files');
  await expect(page.getByText(/^At rank 1 the LoRA leaves \d\d\.\d.* not of so low a rank\.$/)).toBeVisible();
});
