/** Two LoRAs of an image model, as their authors' files are: dropped, merged into one, saved in the names of the first. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diffusers, kohya, loraFile } from '../image-loras';
import { readSafetensors } from './merged-folder';
import { amalgam, counting, drop, expect, fetchMerged, show, test } from './studio';

const scratch = mkdtempSync(join(tmpdir(), 'amalgam-image-'));
test.afterAll(() => rmSync(scratch, { recursive: true }));

test('I have two LoRAs of SDXL: dropped, merged, saved', async ({ page }) => {
  const files: string[] = [];
  for (const [name, tensors] of Object.entries({ ink: kohya, snow: diffusers })) {
    const [file] = loraFile(name, tensors).files;
    files.push(join(scratch, `${name}.safetensors`));
    writeFileSync(files.at(-1)!, await file!.open().read(0, file!.byteLength));
  }
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
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download lora.safetensors' }).click();
  const here = readSafetensors(readFileSync(await (await download).path())).tensors;
  expect([...here.keys()].sort()).toEqual(
    Object.keys(kohya)
      .filter((key) => !key.endsWith('.alpha'))
      .sort(),
  );

  // the command makes the same of the same files
  const text = `merge_method: task_arithmetic\nmodels: [${files.map((file) => `{model: "${file}", parameters: {weight: 1}}`)}]\namalgam: {output: adapter}\n`;
  writeFileSync(join(scratch, 'both.yml'), text);
  const out = join(scratch, 'merged');
  const told = await amalgam(['merge', join(scratch, 'both.yml'), '--out', out]);
  expect(told.code, told.stderr).toBe(0);
  expect(readSafetensors(readFileSync(join(out, 'lora.safetensors'))).tensors).toEqual(here);
});
