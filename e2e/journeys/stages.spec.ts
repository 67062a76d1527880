/** A recipe of several stages: the same bytes as merging step by step, nothing left in between, nothing half-written. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MergeReport } from '../../src/reports/merge';
import type { PlanReport } from '../../src/reports/plan';
import { readSafetensors } from './merged-folder';
import { amalgam, expect, readJson, recipeFile, SAMPLES, test, work } from './studio';

const FIRST = `merge_method: linear
models:
  - model: ${SAMPLES}/base+${SAMPLES}/kitchen
    parameters: { weight: 0.5 }
  - model: ${SAMPLES}/base+${SAMPLES}/harbour
    parameters: { weight: 0.5 }
`;
const last = (first: string) => `merge_method: slerp
base_model: ${first}
models:
  - model: ${SAMPLES}/workshop
parameters: { t: 0.4 }
`;

const tensorsOf = (folder: string) => {
  const { tensors } = readSafetensors(readFileSync(join(folder, 'model.safetensors')));
  return new Map(
    [...tensors].map(([name, { values }]) => [
      name,
      createHash('sha256').update(Buffer.from(values.buffer)).digest('hex'),
    ]),
  );
};

test('stages give what merging step by step gives, on both engines, and can be verified', async () => {
  const apart = join(work, 'first');
  expect((await amalgam(['merge', recipeFile(FIRST), '--out', apart, '--engine', 'cpu'])).code).toBe(0);
  const stepwise = join(work, 'stepwise');
  expect((await amalgam(['merge', recipeFile(last(apart)), '--out', stepwise, '--engine', 'cpu'])).code).toBe(
    0,
  );

  const file = recipeFile(`name: half\n${FIRST}---\n${last('half')}`, 'staged.yml');
  for (const engine of ['cpu', 'webgpu']) {
    const out = join(work, engine);
    const report = join(work, `${engine}.json`);
    const { code, stderr } = await amalgam([
      'merge',
      file,
      '--out',
      out,
      '--engine',
      engine,
      '--report',
      report,
    ]);
    expect(code, stderr).toBe(0);
    expect(tensorsOf(out)).toEqual(tensorsOf(stepwise));
    const merged = readJson(report) as MergeReport;
    expect(merged.stagesMerged?.map((stage) => stage.name)).toEqual(['half']);
    expect(merged.stagesMerged?.[0]?.inputs).toHaveLength(3);
    expect(merged.stagesMerged?.[0]?.tensors).toHaveLength(merged.tensors.length);
    // what the result was made of is what the stage wrote
    const read = merged.inputs.find((input) => input.id === 'half');
    expect(read?.hash).toBe(merged.stagesMerged?.[0]?.shards[0]?.hash);
    expect(readFileSync(join(out, 'mergekit_config.yml'), 'utf8')).toMatch(
      /^name: half\n[\s\S]*\n---\nmerge_method: slerp/,
    );
  }
  const verified = await amalgam(['verify', join(work, 'cpu'), '--recipe', file, '--engine', 'cpu']);
  expect(verified.stdout).toContain('The bytes agree');
});

test('a fault in the second stage is found before the first is merged, and nothing is written', async () => {
  const out = join(work, 'out');
  const wrong = recipeFile(`name: half\n${FIRST}---\n${last('half').replace('0.4', '140')}`);
  const plan = await amalgam(['plan', wrong, '--json']);
  expect(plan.code).toBe(1);
  const report = JSON.parse(plan.stdout) as PlanReport;
  expect(report.stages?.[0]?.report.clean).toBe(true);
  expect(report.problems.filter((p) => p.severity === 'error')).toHaveLength(1);
  const merge = await amalgam(['merge', wrong, '--out', out]);
  expect(merge.code).toBe(1);
  expect(merge.stderr).toMatch(/t must lie between -100 and 100/);
  expect(existsSync(out)).toBe(false);
});

test('a second stage that fails while it is merged leaves nothing half-written', async () => {
  const out = join(work, 'out');
  // NaN in the weights shows only when they are read
  const damaged = join(work, 'damaged');
  mkdirSync(damaged);
  for (const name of readdirSync(join(SAMPLES, 'workshop'))) {
    const bytes = readFileSync(join(SAMPLES, 'workshop', name));
    if (name === 'model.safetensors') bytes.fill(0xff, bytes.length - 2);
    writeFileSync(join(damaged, name), bytes);
  }
  const text = `name: half\n${FIRST}---\n${last('half').replace(`${SAMPLES}/workshop`, damaged)}`;
  const merge = await amalgam(['merge', recipeFile(text), '--out', out, '--engine', 'cpu']);
  expect(merge.code).toBe(1);
  expect(merge.stderr).toMatch(/half 1\/2/);
  expect(merge.stderr).toMatch(/NaN|not finite|infinite/i);
  expect(existsSync(out)).toBe(false);
});

test('names that cannot be resolved are told with their line', async () => {
  const circle = await amalgam(['plan', recipeFile(`name: a\n${last('b')}---\nname: b\n${last('a')}`)]);
  expect(circle.stderr).toMatch(/recipe\.yml:1:7: a needs itself: a → b → a/);
  const unused = await amalgam(['plan', recipeFile(`name: half\n${FIRST}---\n${last(`${SAMPLES}/base`)}`)]);
  expect(unused.stderr).toMatch(/recipe\.yml:1:7: No other document uses half/);
});
