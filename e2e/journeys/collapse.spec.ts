/** Collapsing layers from a terminal: what is measured is what the written model gives, and what is refused. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CollapseReport, MeasureLayersReport } from '../../src/tools/collapse/report';
import { readSafetensors } from './merged-folder';
import { amalgam, expect, ROOT, readJson, test, work } from './studio';

const base = join(ROOT, 'public/samples/base');
/** Token ids of nothing in particular, enough for one window. */
const IDS = Array.from({ length: 96 }, (_, i) => 3 + ((i * 53) % 400));
let tokens: string;
test.beforeEach(() => {
  tokens = join(work, 'ids.json');
  writeFileSync(tokens, JSON.stringify(IDS));
});

for (const engine of ['cpu', 'webgpu']) {
  test(`on ${engine}: a shallower model whose perplexity is the one it was measured with`, async () => {
    const out = join(work, engine);
    const reportFile = join(work, `${engine}.json`);
    const { code, stdout } = await amalgam([
      ...['collapse', base, '--out', out, '--tokens', tokens, '--planner', 'influence', '--remove', '2'],
      ...['--variant', 'rdsc', '--engine', engine, '--report', reportFile],
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('4 of 6 layers');
    const report = readJson(reportFile) as CollapseReport;
    expect(report).toMatchObject({ engine, layers: { before: 6, after: 4 } });
    expect(report.removed).toHaveLength(2);
    expect(report.similarity.mean).toBeLessThan(1);
    expect(readdirSync(out)).toEqual(
      expect.arrayContaining(['README.md', 'config.json', 'model.safetensors', 'tokenizer.json']),
    );
    expect(readJson(out, 'config.json')).toMatchObject({ num_hidden_layers: 4 });
    expect(readFileSync(join(out, 'README.md'), 'utf8')).toContain(
      `Removed\\: ${report.removed[0]} and ${report.removed[1]}`,
    );
    const { tensors } = readSafetensors(readFileSync(join(out, 'model.safetensors')));
    const layers = [...tensors.keys()].map((name) => /layers\.(\d+)\./.exec(name)?.[1]).filter(Boolean);
    expect([...new Set(layers)].sort()).toEqual(['0', '1', '2', '3']);

    const evaluated = join(work, `${engine}-evaluated.json`);
    expect(
      (await amalgam(['evaluate', out, '--tokens', tokens, '--engine', engine, '--report', evaluated])).code,
    ).toBe(0);
    expect(readJson(evaluated).meanNll).toBe(report.perplexity!.after.meanNll);
  });
}

test('experts are made one model, and the least of them go again', async () => {
  const recipe = join(work, 'experts.yml');
  const samples = ['base', 'workshop', 'base+kitchen'].map((name) =>
    name.replace(/\w+/g, (one) => join(ROOT, 'public/samples', one)),
  );
  const experts = samples.map(
    (name) => `  - source_model: ${name}\n    positive_prompts: ["${name.length}"]\n`,
  );
  writeFileSync(recipe, `base_model: ${base}\nexperts:\n${experts.join('')}`);
  const [mixture, out] = [join(work, 'mixture'), join(work, 'fewer')];
  const made = await amalgam(['moe', recipe, '--out', mixture, '--gguf', 'Q8_0', '--engine', 'cpu']);
  expect(made.stdout).toMatch(/Mixtral of 3\sexperts, 2 a token/);
  expect(readdirSync(mixture)).toEqual(
    expect.arrayContaining(['mergekit_moe_config.yml', 'mixture-Q8_0.gguf', 'tokenizer.json']),
  );
  const reportFile = join(work, 'fewer.json');
  const { code, stdout } = await amalgam([
    ...['collapse', mixture, '--planner', 'experts', '--remove', '1', '--tokens', tokens],
    ...['--out', out, '--engine', 'cpu', '--report', reportFile],
  ]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/2 of 3\sexperts a layer/);
  expect(readJson(out, 'config.json')).toMatchObject({ model_type: 'mixtral', num_local_experts: 2 });
  const evaluated = join(work, 'fewer-evaluated.json');
  await amalgam(['evaluate', out, '--tokens', tokens, '--engine', 'cpu', '--report', evaluated]);
  expect(readJson(evaluated).meanNll).toBe(
    (readJson(reportFile) as CollapseReport).perplexity!.after.meanNll,
  );
});

test('says what could go', async () => {
  const reportFile = join(work, 'measure.json');
  const { code, stdout } = await amalgam([
    ...['collapse', base, '--measure', '--tokens', tokens, '--block', '2', '--engine', 'cpu'],
    ...['--report', reportFile],
  ]);
  expect(code).toBe(0);
  expect(stdout).toContain('block influence');
  const report = readJson(reportFile) as MeasureLayersReport;
  expect(report.influence).toHaveLength(6);
  expect(report.distance).toHaveLength(7);
  expect(report.curve!.map(({ layer }) => layer)).toEqual([0, 1, 2, 3, 4]);
});

test('says what is wrong, ends with a code, and writes nothing', async () => {
  const out = join(work, 'never');
  const short = join(work, 'short.json');
  writeFileSync(short, '[1, 2]');
  for (const [args, words] of [
    [['--tokens', tokens, '--remove', '9'], /Cannot remove 9 layers of 6/],
    [['--tokens', short, '--planner', 'influence', '--remove', '1'], /2 tokens; 8 is the least/],
    [['--tokens', tokens, '--similarity', '0.999999'], /so there is nothing to do/],
    [['--tokens', tokens, '--block', '7'], /No block of 7 layers fits/],
  ] as const) {
    const { code, stderr } = await amalgam(['collapse', base, '--out', out, ...args, '--engine', 'cpu']);
    expect(stderr).toMatch(words);
    expect(code).toBeGreaterThan(0);
    expect(existsSync(out)).toBe(false);
  }
});
