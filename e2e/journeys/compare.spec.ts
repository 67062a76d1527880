/** Comparing and extracting from a terminal: files, both engines, an adapter found again, and what is refused. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { ExtractLoraReport } from '../../src/tools/lora/report';
import { writeSmallSample } from '../disk-folder';
import { goldenFolder } from '../goldens';
import { treeHashOfFile } from '../tree-hash';
import { readSafetensors } from './merged-folder';
import { amalgam, expect, readJson, SAMPLES, test, work } from './studio';

test('finds the kitchen LoRA again in the model it was merged into, to the same bytes on both engines', async () => {
  // two layers have every kind of matrix
  const [base, kitchen] = ['base', 'kitchen'].map((name) => join(work, name)) as [string, string];
  for (const folder of [base, kitchen]) await writeSmallSample(basename(folder), folder, { layers: 2 });
  const recipe = join(work, 'recipe.yml');
  const merged = join(work, 'merged');
  writeFileSync(
    recipe,
    `merge_method: passthrough\nmodels:\n  - model: ${base}+${kitchen}\ndtype: float32\n`,
  );
  expect((await amalgam(['merge', recipe, '--out', merged, '--engine', 'cpu'])).code).toBe(0);

  const hashes: string[] = [];
  for (const engine of ['cpu', 'webgpu']) {
    const out = join(work, engine);
    const reportFile = join(work, `${engine}.json`);
    const { code, stdout } = await amalgam([
      ...['lora', base, merged, '--rank', '8', '--out', out],
      ...['--engine', engine, '--report', reportFile],
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('Extracted 14');
    const report = readJson(reportFile) as ExtractLoraReport;
    expect(report.engine).toBe(engine);
    expect(report.modules).toHaveLength(14);
    for (const module of report.modules) expect(module.error, module.module).toBeLessThanOrEqual(1e-5);
    expect(report.merged.error).toBeLessThanOrEqual(1e-5);
    expect(readdirSync(out).sort()).toEqual([
      'README.md',
      'adapter_config.json',
      'adapter_model.safetensors',
      'amalgam-hashes.json',
    ]);
    hashes.push(treeHashOfFile(join(out, 'adapter_model.safetensors')));
    expect(report.files[0]!.hash).toBe(hashes.at(-1));
  }
  expect(hashes[0]).toBe(hashes[1]);

  const config = readJson(work, 'cpu', 'adapter_config.json');
  expect(config).toMatchObject({ peft_type: 'LORA', r: 8, lora_alpha: 8, rank_pattern: {} });
  expect(config.target_modules.sort()).toEqual(
    readJson(kitchen, 'adapter_config.json').target_modules.sort(),
  );
  const found = readSafetensors(readFileSync(join(work, 'cpu/adapter_model.safetensors')));
  const original = readSafetensors(readFileSync(join(kitchen, 'adapter_model.safetensors')));
  const shapes = ({ tensors }: typeof found) =>
    [...tensors].map(([name, { shape }]) => `${name} [${shape}]`).sort();
  expect(shapes(found)).toEqual(shapes(original));

  // what was written is an adapter like any other
  writeFileSync(
    recipe,
    `merge_method: passthrough\nmodels:\n  - model: ${base}+${work}/cpu\ndtype: float32\n`,
  );
  expect((await amalgam(['plan', recipe])).code).toBe(0);
});

test('compares on both engines, which agree to the bit, and writes every file', async () => {
  const compare = async (engine: string) => {
    const folder = join(work, `compared-${engine}`);
    const { code, stdout } = await amalgam([
      ...['compare', `${SAMPLES}/base`, `${SAMPLES}/workshop`, '--out', folder],
      ...['--engine', engine, '--no-lora-analysis'],
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('56 tensors compared: 56 modified, 0 identical.');
    const { tensors, total } = readJson(folder, 'weight_differences.json');
    for (const tensor of Object.values<{ seconds?: number }>(tensors)) delete tensor.seconds;
    return { folder, tensors, total };
  };
  const { folder: out, tensors, total } = await compare('webgpu');
  const other = await compare('cpu');
  expect([other.tensors, other.total]).toEqual([tensors, total]);
  expect(readdirSync(out).sort()).toEqual([
    'amalgam-hashes.json',
    'architecture_comparison.json',
    'comparison_report.html',
    'config_comparison.json',
    'difference.txt',
    'lora_analysis.json',
    'weight_differences.json',
  ]);
  expect(Object.keys(tensors)).toHaveLength(56);
  expect(total.relative_diff).toBeGreaterThan(0.01);
});

test('says what is wrong, ends with a code, and writes nothing', async () => {
  const out = join(work, 'never');
  const same = await amalgam(['lora', `${SAMPLES}/base`, `${SAMPLES}/base`, '--rank', '8', '--out', out]);
  expect(same.code).toBe(1);
  expect(same.stderr).toMatch(/are identical in all 56 tensors: the difference is zero and has rank 0/);
  const other = await amalgam([
    'compare',
    `${SAMPLES}/base`,
    join(goldenFolder('forward'), 'gpt2'),
    '--out',
    out,
  ]);
  expect(other.code).toBe(1);
  expect(other.stderr).toMatch(/\(llama\) and .* \(gpt2\) have no tensor in common/);
  expect(existsSync(out)).toBe(false);
  expect(readdirSync(work)).toEqual([]);
});
