/** A model that somebody has in fewer bits, from Ollama, llama.cpp or MLX, with a LoRA on it: merged, run, saved in full precision. */
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSafetensorsHeader } from '../../src/formats/safetensors-write';
import { sampleModels, startFakeHub } from '../fake-hub';
import { fewBitsBase } from '../few-bits';
import { HUB_CDN_PORT, HUB_PORT } from './addresses';
import { readSafetensors } from './merged-folder';
import {
  amalgam,
  beginning,
  counting,
  downloaded,
  drop,
  expect,
  fetchMerged,
  merge,
  openSample,
  pointAtFakeHub,
  readJson,
  SAMPLES,
  show,
  test,
  work,
} from './studio';

type Tensors = ReturnType<typeof readSafetensors>['tensors'];

/** The base of the sample in fewer bits. */
async function quantized(): Promise<string> {
  const out = join(work, 'base');
  const { code, stderr } = await amalgam([
    ...['convert', 'public/samples/base', '--gguf', 'Q4_K_M', '--gguf-only', '--out', out],
  ]);
  expect(code, stderr).toBe(0);
  return join(out, 'base-Q4_K_M.gguf');
}

test('I have a GGUF from Ollama and a LoRA: dropped, merged, saved', async ({ page }) => {
  const file = await quantized();
  await openSample(page);
  const { click, measured, clicks } = counting();
  const lora = ['adapter_config.json', 'adapter_model.safetensors'].map((name) =>
    join(SAMPLES, 'kitchen', name),
  );
  await drop(page, [file, ...lora]);
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  await expect(recipe.getByText('base-Q4_K_M')).toBeVisible();
  await expect(recipe.getByText(/Q8_0 \+ F32/)).toBeVisible();
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await fetchMerged(page, click);
  measured('a GGUF and a LoRA');
  expect(clicks()).toBeLessThanOrEqual(2);

  // what it was, and what is lost for good
  await show(page, 'Files');
  await expect(page.getByText(/stored as Q4_K_M \(6\.1 bits a weight\)/).first()).toBeVisible();
  const merged = (await downloaded(page, 'model.safetensors')).bytes;

  // the command makes the same of the same file, whatever it is called
  const [blob, out] = [join(work, `sha256-${'0a'.repeat(32)}`), join(work, 'merged')];
  copyFileSync(file, blob);
  const told = await amalgam(['convert', `${blob}+public/samples/kitchen`, '--out', out]);
  expect(told.code, told.stderr).toBe(0);
  const here = readSafetensors(merged).tensors;
  const there = readSafetensors(readFileSync(join(out, 'model.safetensors'))).tensors;
  expect(here).toEqual(there);

  // it runs, and so does the file itself
  const scored = await amalgam(['evaluate', out, blob, '--text', beginning('workshop', 3000)]);
  expect(scored.code, scored.stderr).toBe(0);
  expect(scored.stdout).toMatch(/merged.*\d\.\d{3}[\s\S]*sha256-.*\d\.\d{3}/);
});

test('a model in four bits of MLX and a LoRA: dropped one after the other, merged, saved', async ({
  page,
}) => {
  const folder = mkdtempSync(join(work, 'mlx-'));
  const weights = fewBitsBase(folder, 'mlx');
  await openSample(page);
  await drop(
    page,
    ['config.json', 'model.safetensors', 'tokenizer.json'].map((name) => join(folder, name)),
  );
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  await expect(recipe.getByText(/MLX \(4 bits\)/)).toBeVisible();
  const lora = ['adapter_config.json', 'adapter_model.safetensors'].map((name) =>
    join(SAMPLES, 'kitchen', name),
  );
  await drop(page, lora);
  await expect(page.getByText(/^Ready:/)).toBeVisible();
  await merge(page);
  await show(page, 'Files');
  await expect(page.getByText(/stored as MLX \(4 bits\)/).first()).toBeVisible();
  const merged = readSafetensors((await downloaded(page, 'model.safetensors')).bytes).tensors;

  expectFolded(merged, weights);
});

/** Every linear weight is what was packed and the change of kitchen, to the precision of bfloat16. */
function expectFolded(merged: Tensors, weights: ReturnType<typeof fewBitsBase>): void {
  const [config, factors] = ['adapter_config.json', 'adapter_model.safetensors'].map((name) =>
    readFileSync(join(SAMPLES, 'kitchen', name)),
  );
  const { r, lora_alpha } = JSON.parse(config!.toString()) as { r: number; lora_alpha: number };
  const { tensors } = readSafetensors(factors!);
  let changed = 0;
  for (const [name, { columns, values }] of weights) {
    const module = `base_model.model.${name.replace(/\.weight$/, '')}`;
    const [a, b] = ['A', 'B'].map((side) => tensors.get(`${module}.lora_${side}.weight`)?.values);
    const here = merged.get(name)!;
    expect(here.dtype).toBe('BF16');
    const far = here.values.reduce((most, value, i) => {
      const [row, column] = [Math.floor(i / columns), i % columns];
      let delta = 0;
      if (a && b) for (let k = 0; k < r; k++) delta += b[row * r + k]! * a[k * columns + column]!;
      const expected = values[i]! + (lora_alpha / r) * delta;
      return Math.max(most, Math.abs(value - expected) / (Math.abs(expected) + 1e-6));
    }, 0);
    // bfloat16 has eight bits
    expect([name, far < 2 ** -8]).toEqual([name, true]);
    if (a) changed++;
  }
  expect(changed).toBeGreaterThan(0);
}

/** The base in four bits of MLX. */
function mlxFolder(): string {
  const folder = mkdtempSync(join(work, 'mlx-'));
  fewBitsBase(folder, 'mlx');
  return folder;
}

/** The LoRA as mlx_lm stores it: factors the other way round, one scale. */
function mlxLora(): string {
  const folder = mkdtempSync(join(work, 'lora-'));
  const stored = readJson(SAMPLES, 'kitchen/adapter_config.json');
  const { tensors } = readSafetensors(readFileSync(join(SAMPLES, 'kitchen/adapter_model.safetensors')));
  const turned = [...tensors].map(([name, { shape, values }]) => {
    const [rows, columns] = shape as [number, number];
    const flipped = Float32Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);
    const named = name
      .replace('base_model.model.', '')
      .replace(/lora_(A|B)\.weight$/, (_, side: string) => `lora_${side.toLowerCase()}`);
    return { name: named, shape: [columns, rows], bytes: new Uint8Array(flipped.buffer) };
  });
  const header = buildSafetensorsHeader(
    turned.map(({ name, shape, bytes }) => ({ name, dtype: 'F32', shape, byteLength: bytes.length })),
    {},
  );
  writeFileSync(
    join(folder, 'adapters.safetensors'),
    Buffer.concat([header, ...turned.map(({ bytes }) => bytes)]),
  );
  const keys = [
    ...new Set(turned.map(({ name }) => name.replace(/^model\.layers\.\d+\.|\.lora_[ab]$/g, ''))),
  ];
  const config = {
    ...{ fine_tune_type: 'lora', num_layers: 16 },
    lora_parameters: { rank: stored.r, scale: stored.lora_alpha / stored.r, dropout: 0, keys },
  };
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify(config));
  return folder;
}

for (const format of ['nf4', 'awq', 'mlx'] as const) {
  test(`a base in ${format} and its LoRA: merged by the command, evaluated, as safetensors and GGUF`, async () => {
    const folder = mkdtempSync(join(work, `${format}-`));
    const weights = fewBitsBase(folder, format);
    const lora = format === 'mlx' ? mlxLora() : join(SAMPLES, 'kitchen');
    const out = join(folder, 'merged');
    const told = await amalgam(['merge', `${folder}+${lora}`, '--out', out, '--gguf', 'BF16']);
    expect(told.code, told.stderr).toBe(0);
    expectFolded(readSafetensors(readFileSync(join(out, 'model.safetensors'))).tensors, weights);
    const gguf = join(out, readdirSync(out).find((name) => name.endsWith('.gguf'))!);
    const compared = [out, gguf, `${folder}+${lora}`, 'public/samples/base'];
    const scored = await amalgam(['evaluate', ...compared, '--text', beginning('kitchen', 3000)]);
    expect(scored.code, scored.stderr).toBe(0);
    const found = [...scored.stdout.matchAll(/^.{3}\S+ +(\d\.\d+) ± /gm)].map(([, number]) => Number(number));
    expect(found).toHaveLength(4);
    const [merged, asGguf, unwritten, base] = found as [number, number, number, number];
    expect(asGguf).toBeCloseTo(merged, 3);
    expect(Math.abs(unwritten / merged - 1)).toBeLessThan(0.01);
    // what the LoRA was trained for is kept through four bits
    expect(merged).toBeLessThan(base);
  });
}

test('a QLoRA from the Hub names a copy in few bits: the card shows it beside the full weights, with both sizes', async ({
  page,
}) => {
  const lora = (file: string) => new Uint8Array(readFileSync(join(SAMPLES, 'kitchen', file)));
  const config = JSON.parse(new TextDecoder().decode(lora('adapter_config.json')));
  const copy = 'writer/base-4bit';
  const hub = await startFakeHub({
    models: [
      ...sampleModels(SAMPLES),
      {
        id: copy,
        files: mlxFolder(),
        tags: ['base_model:amalgam/base', 'base_model:quantized:amalgam/base'],
      },
      { id: 'writer/gated-4bit', files: mlxFolder(), tags: ['base_model:quantized:amalgam/gated'] },
      ...[copy, 'writer/gated-4bit'].map((base, i) => ({
        id: `writer/qlora-${i}`,
        files: {
          'adapter_config.json': JSON.stringify({ ...config, base_model_name_or_path: base }),
          'adapter_model.safetensors': lora('adapter_model.safetensors'),
        },
      })),
    ],
    port: HUB_PORT,
    cdnPort: HUB_CDN_PORT,
  });
  const recipe = page.getByRole('complementary', { name: 'Recipe' });
  const take = async (id: string) => {
    await page.getByLabel('Search the Hub').fill(id);
    await page
      .getByRole('button', { name: new RegExp(`^(Add|Use as base): ${id}`) })
      .first()
      .click();
    await expect(page.getByRole('dialog')).toHaveCount(0);
  };
  try {
    await page.goto('/');
    await page.getByRole('button', { name: 'Search the Hub' }).click();
    await pointAtFakeHub(page);
    await take('writer/qlora-0');
    // what it would get is known before it is asked for
    await expect(recipe.getByText(copy, { exact: true })).toHaveCount(2);
    await expect(recipe.getByText(/MLX \(4 bits\)/)).toBeVisible();
    const small = recipe.getByRole('button', { name: /^Get the copy in fewer bits · [\d.]+ [kM]B$/ });
    const full = recipe.getByRole('button', { name: /^Get the full weights · [\d.]+ [kM]B$/ });
    await expect(small).toBeVisible();
    await expect(full).toBeVisible();
    await full.click();
    await expect(page.getByText(/^Ready:/)).toBeVisible();
    await expect(recipe.getByText('amalgam/base', { exact: true })).toBeVisible();
    await expect(recipe.getByText(copy)).toHaveCount(0);

    // full weights that may not be read: their page, and the copy all the same
    await page.getByRole('button', { name: 'New', exact: true }).click();
    await page.getByRole('button', { name: 'Search the Hub' }).click();
    await take('writer/qlora-1');
    await expect(recipe.getByText(/gated: its author decides/)).toBeVisible();
    await expect(recipe.getByRole('link', { name: 'Open license page' })).toHaveAttribute(
      'href',
      /amalgam\/gated$/,
    );
    await small.click();
    await expect(page.getByText(/^Ready:/)).toBeVisible();
    await expect(recipe.getByText(/MLX \(4 bits\)/)).toBeVisible();
  } finally {
    await hub.close();
  }
});
