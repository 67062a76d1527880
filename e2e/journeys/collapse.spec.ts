/** Collapsing layers from a terminal: what is measured is what the written model gives, and what is refused. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import type { CollapseReport, MeasureDepthReport } from '../../src/reports/collapse';
import { readSafetensors } from './merged-folder';

const root = join(import.meta.dirname, '../..');
const base = join(root, 'public/samples/base');
/** Token ids of nothing in particular, enough for one window. */
const IDS = Array.from({ length: 96 }, (_, i) => 3 + ((i * 53) % 400));
let work: string;
let tokens: string;
test.beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'amalgam-collapse-'));
  tokens = join(work, 'ids.json');
  writeFileSync(tokens, JSON.stringify(IDS));
});
test.afterEach(() => rmSync(work, { recursive: true, force: true }));

function amalgam(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['src/cli/amalgam.mjs', ...args], { cwd: root }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}
const json = (...path: string[]) => JSON.parse(readFileSync(join(...path), 'utf8'));

for (const engine of ['cpu', 'webgpu']) {
  test(`on ${engine}: a shallower model whose perplexity is the one it was measured with`, async () => {
    const out = join(work, engine);
    const reportFile = join(work, `${engine}.json`);
    const { code, stdout } = await amalgam(
      ...['collapse', base, '--out', out, '--tokens', tokens, '--layers', '2,4'],
      ...['--variant', 'mean', '--engine', engine, '--report', reportFile],
    );
    expect(code).toBe(0);
    expect(stdout).toContain('4 of 6 layers');
    const report = json(reportFile) as CollapseReport;
    expect(report).toMatchObject({ engine, removed: [2, 4], layers: { before: 6, after: 4 } });
    expect(report.similarity!.mean).toBeLessThan(1);
    expect(readdirSync(out)).toEqual(
      expect.arrayContaining(['README.md', 'config.json', 'model.safetensors', 'tokenizer.json']),
    );
    expect(json(out, 'config.json')).toMatchObject({ num_hidden_layers: 4 });
    expect(readFileSync(join(out, 'README.md'), 'utf8')).toContain('Removed\\: 2 and 4');
    const { tensors } = readSafetensors(readFileSync(join(out, 'model.safetensors')));
    const layers = [...tensors.keys()].map((name) => /layers\.(\d+)\./.exec(name)?.[1]).filter(Boolean);
    expect([...new Set(layers)].sort()).toEqual(['0', '1', '2', '3']);

    const evaluated = join(work, `${engine}-evaluated.json`);
    expect(
      (await amalgam('evaluate', out, '--tokens', tokens, '--engine', engine, '--report', evaluated)).code,
    ).toBe(0);
    expect(json(evaluated).meanNll).toBe(report.perplexity!.after.meanNll);
  });
}

test('says what could go', async () => {
  const reportFile = join(work, 'measure.json');
  const { code, stdout } = await amalgam(
    ...['collapse', base, '--measure', '--tokens', tokens, '--block', '2', '--engine', 'cpu'],
    ...['--report', reportFile],
  );
  expect(code).toBe(0);
  expect(stdout).toContain('block influence');
  const report = json(reportFile) as MeasureDepthReport;
  expect(report.influence).toHaveLength(6);
  expect(report.distance.lastToken).toHaveLength(7);
  expect(report.curve!.map(({ layer }) => layer)).toEqual([0, 1, 2, 3, 4]);
});

test('says what is wrong, ends with a code, and writes nothing', async () => {
  const out = join(work, 'never');
  const short = join(work, 'short.json');
  writeFileSync(short, '[1, 2]');
  for (const [args, words] of [
    [['--layers', '9'], /no layer 9: the model has the layers 0 to 5/],
    [['--tokens', short, '--planner', 'influence', '--remove', '1'], /2 tokens; 8 is the least/],
    [['--tokens', tokens, '--threshold', '0.999999'], /so there is nothing to do/],
    [['--tokens', tokens, '--block', '7'], /No block of 7 layers fits/],
  ] as const) {
    const { code, stderr } = await amalgam('collapse', base, '--out', out, ...args, '--engine', 'cpu');
    expect(stderr).toMatch(words);
    expect(code).toBeGreaterThan(0);
    expect(existsSync(out)).toBe(false);
  }
});
