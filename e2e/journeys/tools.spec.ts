/** Two models compared, a LoRA found again, a layer taken out: the studio's other tools on the sample. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { readSafetensors } from './merged-folder';
import { downloaded, expect, openSample, seriousIssues, show, test } from './studio';

async function open(
  page: Page,
  place: 'Difference' | 'LoRA' | 'Collapse' | 'Convert' | 'Experts' | 'Tokenizer',
) {
  await openSample(page);
  await show(page, place);
}

const noSeriousFaults = async (page: Page) =>
  expect(await seriousIssues(page, '.tool-screen', '.inspector')).toEqual([]);

test('base and workshop are compared: chart, words, spectrum, files', async ({ page }) => {
  await open(page, 'Difference');
  await expect(page.getByRole('combobox', { name: 'Fine-tuned model' })).toHaveValue('samples/workshop');
  await page.getByRole('button', { name: 'Measure difference', exact: true }).click();
  await expect(page.getByText(/^56 tensors compared: 56 modified/)).toBeVisible();
  await expect(page.getByText('Both configs say the same.')).toBeVisible();

  // by keyboard to a tensor: its spectrum opens
  const chart = page.getByRole('region', { name: 'Where the weights moved' });
  const cell = chart.getByRole('gridcell', { name: /^layer 3, mlp\.down_proj, relative difference 0\.\d+/ });
  await cell.focus();
  await page.keyboard.press('Enter');
  const inspector = page.getByRole('complementary', { name: 'Inspector' });
  await expect(inspector.getByText('not of low rank')).toBeVisible();
  await expect(inspector.getByRole('img', { name: /^Spectrum: 64 singular values/ })).toBeVisible();

  const report = JSON.parse(String((await downloaded(page, 'weight_differences.json')).bytes));
  expect(JSON.stringify(report)).toContain('model.layers.3.mlp.down_proj.weight');
  await noSeriousFaults(page);
});

test('the kitchen adapter is found again in what it makes of the base, at rank 8', async ({ page }) => {
  await open(page, 'LoRA');
  await page.getByRole('radio', { name: 'Two models' }).click();
  await page.getByRole('combobox', { name: 'Fine-tuned model' }).selectOption('samples/base+samples/kitchen');
  await page.getByRole('button', { name: 'Extract LoRA', exact: true }).click();
  const left = page.locator('.costs > div', { hasText: 'Error left' }).locator('strong');
  await expect(left).toBeVisible();
  const error = Number((await left.textContent())?.replace('\u2212', '-'));
  expect(error).toBeGreaterThan(0);
  expect(error).toBeLessThanOrEqual(1e-5);
  const config = JSON.parse(String((await downloaded(page, 'adapter_config.json')).bytes));
  expect(config).toMatchObject({ peft_type: 'LORA', r: 8, lora_alpha: 8 });
  const { tensors } = readSafetensors((await downloaded(page, 'adapter_model.safetensors')).bytes);
  expect(tensors.size).toBe(84);
  await noSeriousFaults(page);

  // the same two models: nothing to do, in words
  await page.getByRole('combobox', { name: 'Fine-tuned model' }).selectOption('samples/base');
  await page.getByRole('button', { name: 'Extract LoRA', exact: true }).click();
  await expect(page.getByText(/identical in all 56 tensors.*nothing to extract/)).toBeVisible();
});

test('one LoRA is inspected, cut to the rank that keeps 90 %, and written for MLX', async ({ page }) => {
  await open(page, 'LoRA');
  await page.getByRole('button', { name: 'Inspect', exact: true }).click();
  await expect(page.getByText('LoRA, r 8, α 16')).toBeVisible();
  await page.getByRole('button', { name: /^90.*rank 7$/ }).click();
  await page.getByRole('combobox', { name: 'Format' }).selectOption('mlx');
  await page.getByRole('button', { name: 'Write LoRA', exact: true }).click();
  await expect(page.getByText(/^At rank 7 the LoRA keeps 9\d\.\d/)).toBeVisible();
  const config = JSON.parse(String((await downloaded(page, 'adapter_config.json')).bytes));
  expect(config).toMatchObject({ fine_tune_type: 'lora', lora_parameters: { rank: 7, scale: 1 } });
  const { tensors } = readSafetensors((await downloaded(page, 'adapters.safetensors')).bytes);
  expect(tensors.get('model.layers.0.mlp.up_proj.lora_a')!.shape).toEqual([128, 7]);
  await noSeriousFaults(page);
});

test('layers are measured, one is taken out, and the shallower model opens again', async ({ page }) => {
  await open(page, 'Collapse');
  const texts = page.getByRole('group', { name: 'Texts to measure on' });
  for (const name of ['kitchen', 'harbour', 'workshop']) await texts.getByRole('button', { name }).click();
  await page.getByRole('button', { name: 'Measure layers' }).click();
  await expect(page.getByText(/^Layer \d goes; of 6\slayers, counted from 0 .*, 5 stay/)).toBeVisible();
  await expect(
    page.getByRole('img', { name: /^Similarity to the original with 3 layers as one/ }),
  ).toBeVisible();
  await page.getByRole('button', { name: 'Collapse', exact: true }).click();
  await expect(page.getByText(/^base without layer \d$/)).toBeVisible();
  const cost = page.locator('.costs > div', { hasText: 'Perplexity' }).locator('strong');
  const [before = 0, after = 0] = ((await cost.textContent()) ?? '').split('→').map(Number);
  expect(before).toBeGreaterThan(1);
  expect(after).toBeGreaterThan(before);

  const config = JSON.parse(String((await downloaded(page, 'config.json')).bytes));
  expect(config.num_hidden_layers).toBe(5);
  const { tensors } = readSafetensors((await downloaded(page, 'model.safetensors')).bytes);
  expect([...tensors.keys()].some((name) => name.includes('layers.4.'))).toBe(true);
  expect([...tensors.keys()].some((name) => name.includes('layers.5.'))).toBe(false);
  await noSeriousFaults(page);

  await page.getByRole('button', { name: 'Open it as a model' }).click();
  await expect(page.getByText('Opened base-collapsed.')).toBeVisible();
  await expect(
    page.getByRole('combobox', { name: 'Model to prune' }).getByRole('option', { name: 'base-collapsed' }),
  ).toHaveCount(1);
});

test('one model is written in another dtype, every value as it was', async ({ page }) => {
  await open(page, 'Convert');
  await expect(page.getByRole('combobox', { name: 'Model to convert' })).toHaveValue('samples/base');
  await page.getByRole('combobox', { name: 'Dtype' }).selectOption('float32');
  await page.getByRole('button', { name: 'Convert', exact: true }).click();
  const { tensors } = readSafetensors((await downloaded(page, 'model.safetensors')).bytes);
  const file = join(import.meta.dirname, '../../public/samples/base/model.safetensors');
  const { tensors: before } = readSafetensors(readFileSync(file));
  expect([...tensors.keys()].sort()).toEqual([...before.keys()].sort());
  for (const [name, { dtype, values }] of tensors) {
    expect(dtype).toBe('F32');
    expect(values).toEqual(before.get(name)!.values);
  }
  expect(JSON.parse(String((await downloaded(page, 'config.json')).bytes)).torch_dtype).toBe('float32');
  await noSeriousFaults(page);
});

test('the sample becomes a mixture of experts: planned, written, and a wrong recipe told at its line', async ({
  page,
}) => {
  await open(page, 'Experts');
  const recipe = page.getByRole('textbox', { name: 'Recipe of experts as YAML' });
  await expect(recipe).toHaveValue(/source_model: samples\/base\+samples\/kitchen/);
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await expect(page.locator('.costs')).toContainText('Mixtral');
  await noSeriousFaults(page);

  const asked = await recipe.inputValue();
  await recipe.fill(asked.replace('gate_mode: hidden', 'gate_mode: wise'));
  await expect(page.getByText('Line 2, column 12: gate_mode cannot be “wise”.')).toBeVisible();
  await recipe.fill(asked.replace('samples/workshop', 'nobody/nothing'));
  await expect(page.getByText('nobody/nothing is not open.')).toBeVisible();
  await recipe.fill(asked);
  await page.getByRole('button', { name: 'Write', exact: true }).click();
  const config = JSON.parse(String((await downloaded(page, 'config.json')).bytes));
  expect(config).toMatchObject({ model_type: 'mixtral', num_local_experts: 3, num_experts_per_tok: 2 });
  const { tensors } = readSafetensors((await downloaded(page, 'model.safetensors')).bytes);
  expect(tensors.get('model.layers.5.block_sparse_moe.gate.weight')?.shape).toEqual([3, 128]);
});

test('with the tokenizer of a model that has the same one every token is taken over', async ({ page }) => {
  await open(page, 'Tokenizer');
  const chosen = page.getByRole('combobox', { name: 'Model whose tokenizer it gets' });
  await expect(page.getByRole('button', { name: 'Transplant', exact: true })).toHaveAttribute(
    'aria-disabled',
    'true',
  );
  await chosen.selectOption('samples/workshop');
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  const cost = (name: string) => page.locator('.costs > div', { hasText: name }).locator('strong').last();
  await expect(cost('New tokens')).toHaveText('0');
  await page.getByRole('button', { name: 'Transplant', exact: true }).click();
  await expect(cost('Bits per byte')).toHaveText(/^(\d\.\d+) → \1$/);
  const { tensors } = readSafetensors((await downloaded(page, 'model.safetensors')).bytes);
  expect(tensors.size).toBe(56);
  await noSeriousFaults(page);
});
