/** A model that somebody has as GGUF, from Ollama or llama.cpp, with a LoRA on it: merged, run, and saved in full precision. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSafetensors } from './merged-folder';
import { amalgam, counting, drop, expect, fetchMerged, openSample, show, test } from './studio';

const samples = join(import.meta.dirname, '../../public/samples');
const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-'));
test.afterAll(() => rmSync(scratch, { recursive: true }));

/** The base of the sample in fewer bits. */
async function quantized(): Promise<string> {
  const out = join(scratch, 'base');
  const { code, stderr } = await amalgam([
    ...['convert', 'public/samples/base', '--gguf', 'Q4_K_M', '--gguf-only', '--out', out],
  ]);
  expect(code, stderr).toBe(0);
  return join(out, 'model-Q4_K_M.gguf');
}

test('I have a GGUF from Ollama and a LoRA: dropped, merged, saved', async ({ page }) => {
  const file = await quantized();
  await openSample(page);
  const { click, measured, clicks } = counting();
  const lora = ['adapter_config.json', 'adapter_model.safetensors'].map((name) =>
    join(samples, 'kitchen', name),
  );
  await drop(page, [file, ...lora]);
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  await expect(recipe.getByText('model-Q4_K_M')).toBeVisible();
  await expect(recipe.getByText(/Q8_0 \+ F32/)).toBeVisible();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await fetchMerged(page, click);
  measured('a GGUF and a LoRA');
  expect(clicks()).toBeLessThanOrEqual(2);

  // what it was, and what is lost for good
  await show(page, 'Files');
  await expect(page.getByText(/stored as Q4_K_M \(6\.1 bits a weight\)/).first()).toBeVisible();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download model.safetensors' }).click();
  const merged = readFileSync(await (await download).path());

  // the command makes the same of the same file, whatever it is called
  const [blob, out] = [join(scratch, `sha256-${'0a'.repeat(32)}`), join(scratch, 'merged')];
  copyFileSync(file, blob);
  const told = await amalgam(['convert', `${blob}+public/samples/kitchen`, '--out', out]);
  expect(told.code, told.stderr).toBe(0);
  const here = readSafetensors(merged).tensors;
  const there = readSafetensors(readFileSync(join(out, 'model.safetensors'))).tensors;
  expect(here).toEqual(there);

  // it runs, and so does the file itself
  const text = 'public/samples/texts/workshop.eval.txt';
  const scored = await amalgam(['evaluate', out, blob, '--text', text]);
  expect(scored.code, scored.stderr).toBe(0);
  expect(scored.stdout).toMatch(/merged.*\d\.\d{3}[\s\S]*sha256-.*\d\.\d{3}/);
});
