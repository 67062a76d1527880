/** Two LoRAs of an image model, as their authors' files are: dropped, merged into one, saved in the names of the first. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { diffusers, fileBytes, kohya, tensor, type Values } from '../image-loras';
import { readSafetensors } from './merged-folder';
import { amalgam, counting, downloaded, drop, expect, fetchMerged, show, test, work } from './studio';

/** Writes files of weights. @returns their paths */
function written(all: Record<string, Values>): string[] {
  return Object.entries(all).map(([name, tensors]) => {
    const path = join(work, `${name}.safetensors`);
    writeFileSync(path, fileBytes(tensors));
    return path;
  });
}

test('I have two LoRAs of SDXL: dropped, merged, saved', async ({ page }) => {
  const files = written({ ink: kohya, snow: diffusers });
  await page.goto('/');
  await expect(page.getByRole('button', { name: /sample/i }).first()).toBeVisible();
  const { click, measured, clicks } = counting();
  await drop(page, files);
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  await expect(recipe.getByText('LoRAs become a LoRA without their base.')).toBeVisible();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await fetchMerged(page, click);
  measured('two LoRAs of an image model');
  expect(clicks()).toBeLessThanOrEqual(2);

  await expect(page.getByText(/Models of images cannot be run here/)).toBeVisible();
  await show(page, 'Files');
  const here = readSafetensors((await downloaded(page, 'lora.safetensors')).bytes).tensors;
  expect([...here.keys()].sort()).toEqual(
    Object.keys(kohya)
      .filter((key) => !key.endsWith('.alpha'))
      .sort(),
  );

  // the command makes the same of the same files
  const text = `merge_method: task_arithmetic\nmodels: [${files.map((file) => `{model: "${file}", parameters: {weight: 1}}`)}]\namalgam: {output: adapter}\n`;
  writeFileSync(join(work, 'both.yml'), text);
  const out = join(work, 'merged');
  const told = await amalgam(['merge', join(work, 'both.yml'), '--out', out]);
  expect(told.code, told.stderr).toBe(0);
  expect(readSafetensors(readFileSync(join(out, 'lora.safetensors'))).tensors).toEqual(here);
});

test('I have SDXL in one file and two LoRAs of it: dropped, merged, saved', async ({ page }) => {
  const checkpoint: Values = {
    'model.diffusion_model.input_blocks.4.1.proj_in.weight': tensor(31, 8, 12),
    'model.diffusion_model.input_blocks.4.0.in_layers.2.weight': tensor(32, 8, 6, 3, 3),
    'first_stage_model.decoder.conv_in.weight': tensor(33, 8, 6, 3, 3),
    'conditioner.embedders.0.transformer.text_model.embeddings.token_embedding.weight': tensor(34, 9, 4),
  };
  const [base, ...loras] = written({ sdxl: checkpoint, ink: kohya, snow: diffusers });
  await page.goto('/');
  await expect(page.getByRole('button', { name: /sample/i }).first()).toBeVisible();
  const { click, measured, clicks } = counting();
  // the LoRAs alone would become a LoRA
  await drop(page, loras);
  await expect(page.getByText('LoRAs become a LoRA without their base.')).toBeVisible();
  await drop(page, [base!]);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await fetchMerged(page, click);
  measured('two LoRAs into a checkpoint of an image model');
  expect(clicks()).toBeLessThanOrEqual(2);

  await expect(page.getByText(/Models of images cannot be run here/)).toBeVisible();
  await expect(page.getByRole('button', { name: /GGUF/ })).toHaveCount(0);
  await show(page, 'Files');
  const here = readSafetensors((await downloaded(page, 'sdxl.safetensors')).bytes).tensors;
  expect([...here.keys()].sort()).toEqual(Object.keys(checkpoint).sort());

  // the command makes the same of the same files
  const text = `merge_method: task_arithmetic\nbase_model: "${base}"\nmodels: [${loras.map((file) => `{model: "${base}+${file}", parameters: {weight: 1}}`)}]\nparameters: {normalize: true}\ndtype: float32\n`;
  writeFileSync(join(work, 'into.yml'), text);
  const out = join(work, 'into');
  const told = await amalgam(['merge', join(work, 'into.yml'), '--out', out]);
  expect(told.code, told.stderr).toBe(0);
  expect(readSafetensors(readFileSync(join(out, 'sdxl.safetensors'))).tensors).toEqual(here);
});
