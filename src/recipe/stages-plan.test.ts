import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { goldenFolder } from '../../e2e/goldens';
import { mergeInNode } from '../../e2e/merge-in-node';
import { parseRecipe } from '../formats/recipe-yaml';
import { openModels } from '../host/models';
import { memoryFolder } from '../inputs/memory-models.test.support';
import { openModel } from '../inputs/opened-model';
import { methodById } from '../merge/methods';
import { plannedOutput, planStages, stagedReport } from './stages-plan';

const folder = goldenFolder('mergekit');
const file = (name: string) => new Uint8Array(readFileSync(join(folder, name)));
const golden = ['base', 'a', 'b', 'c'].map((name) =>
  memoryFolder(name, {
    'config.json': file('config.json'),
    'model.safetensors': file(`in_${name}.safetensors`),
    'tokenizer.json': '{"model":{"vocab":{}}}',
  }),
);
const FIRST = `name: first
merge_method: task_arithmetic
base_model: base
models:
  - {model: a, parameters: {weight: 0.7}}
  - {model: b, parameters: {weight: -0.2}}
dtype: float32
`;
const LAST = `merge_method: slerp
base_model: first
models:
  - {model: c}
parameters: {t: 0.3}
`;

async function plan(text: string) {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const model of golden) await models.add(model);
  const { recipe, problems } = parseRecipe(text);
  expect(problems).toEqual([]);
  return { models, staged: await planStages(recipe!, models, methodById, new Map()) };
}

describe('planStages', () => {
  it('plans the result from the headers of what is not merged yet', async () => {
    const { staged } = await plan(`${FIRST}---\n${LAST}`);
    const { stages, result } = staged;
    expect(stages.map(({ name }) => name)).toEqual(['first']);
    expect(result?.problems).toEqual([]);
    expect(result?.base).toBe('first');
    expect(result?.inputs.map((input) => input.folder)).toEqual(['first', 'c']);
    const report = stagedReport(staged);
    expect(report.clean).toBe(true);
    expect(report.bytesToWrite).toBe(stages[0]!.plan.bytesToWrite + result!.bytesToWrite);
    expect(report.stages?.map((s) => [s.name, s.report.tensors.length])).toEqual([['first', 30]]);
  });

  it.each([
    ['one shard', ''],
    ['several shards', 'amalgam: {shard_bytes: 20000}\n'],
  ])('a planned output has the tensors of the real one: %s', async (_, extra) => {
    const { models, staged } = await plan(`${FIRST}${extra}---\n${LAST}`);
    const { plan: first } = staged.stages[0]!;
    const planned = await openModel(
      plannedOutput('first', first, (owner, path) => models.file(owner, path).file),
    );
    const merged = await mergeInNode(FIRST, folder, Object.fromEntries(golden.map((m) => [m.path, m])));
    if (planned.kind !== 'checkpoint') throw new Error('not a checkpoint');
    const shapes = [...planned.tensors].map(([name, { dtype, shape }]) => [name, dtype, [...shape]]);
    const real = [...merged.tensors].map(([name, { dtype, shape }]) => [name, dtype, shape]);
    expect(shapes.sort()).toEqual(real.sort());
    expect(planned.weightFiles.length).toBe(first.shards.length);
    const weights = planned.weightFiles[0]!.open();
    await expect(weights.read(weights.byteLength - 4, weights.byteLength)).rejects.toMatchObject({
      code: 'Internal',
    });
  });

  it('a fault in a stage is named with the stage, and nothing is planned from it', async () => {
    const { staged } = await plan(`${FIRST.replace('weight: 0.7', 'weight: 700')}---\n${LAST}`);
    expect(staged.result).toBeUndefined();
    const report = stagedReport(staged);
    expect(report.clean).toBe(false);
    expect(report.problems[0]?.message).toMatch(/^In first: weight of a must lie between/);
  });

  it('a name that is no stage and no model is named', async () => {
    const { staged } = await plan(
      `${FIRST}---\n${LAST.replace('- {model: c}', '- {model: c..c}').replace('first', 'first')}`,
    );
    const report = stagedReport(staged);
    expect(report.clean).toBe(false);
    expect(report.problems.map((p) => p.message).join()).toMatch(/c\.\.c/);
  });
});
