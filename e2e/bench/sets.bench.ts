/**
 * Every method on the four sets of models, λ tuned for all alike on text the models wrote themselves; for docs/importance.md.
 * A set at a time (`-t stories15M`), or all:
 *
 *   AMALGAM_GOLDEN=FOLDER npx vitest run --config e2e/bench/vitest.bench.config.ts
 *
 * FOLDER holds `golden/real` and `data/stories15m`; without it the sample alone is measured.
 */
import { existsSync } from 'node:fs';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { calibrateInNode, type NodeMerge } from '../calibrate-in-node';
import { type ModelSet, modelSets } from '../model-sets';

interface Row {
  title: string;
  method: string;
  parameters?: Record<string, string | number>;
  /** Of every model. */
  each?: Record<string, number>;
  /** One of the recommended merge's candidates. */
  candidate?: true;
  /** Two models only, and whether the first of them stands where a base does. */
  pair?: 'both' | 'from the first';
  /** Has no base. */
  baseless?: true;
}

const AUTO = { lambda: 'auto' };
const WEIGHT = { weight: 1 };
const TRIMMED = { weight: 1, density: 0.2 };
const HALF = { weight: 1, density: 0.5 };
const MASK = { ...AUTO, selector: 'importance', score: 'wanda' };
const ROWS: readonly Row[] = [
  { title: 'linear', method: 'linear', each: WEIGHT, baseless: true },
  { title: 'SLERP, t 0.5', method: 'slerp', parameters: { t: 0.5 }, pair: 'from the first' },
  { title: 'NuSLERP of the changes', method: 'nuslerp', each: WEIGHT, pair: 'both' },
  { title: 'Multi-SLERP of the changes', method: 'multislerp', each: WEIGHT },
  { title: 'Karcher mean', method: 'karcher', baseless: true },
  { title: 'model stock', method: 'model_stock' },
  { title: 'SCE, top 0.1', method: 'sce', parameters: { select_topk: 0.1 } },
  { title: 'SCE, all', method: 'sce' },
  { title: 'RAM', method: 'ram' },
  { title: 'RAM+', method: 'ramplus_tl' },
  { title: 'DARE linear, density 0.5', method: 'dare_linear', parameters: AUTO, each: HALF },
  { title: 'DARE TIES, density 0.5', method: 'dare_ties', parameters: AUTO, each: HALF },
  { title: 'DELLA, density 0.5', method: 'della', parameters: AUTO, each: HALF },
  { title: 'DELLA linear, density 0.5', method: 'della_linear', parameters: AUTO, each: HALF },
  {
    title: 'breadcrumbs, density 0.9',
    method: 'breadcrumbs',
    parameters: AUTO,
    each: { ...WEIGHT, density: 0.9 },
  },
  {
    title: 'breadcrumbs TIES, density 0.9',
    method: 'breadcrumbs_ties',
    parameters: AUTO,
    each: { ...WEIGHT, density: 0.9 },
  },
  { title: 'TIES, density 0.2', method: 'ties', parameters: AUTO, each: TRIMMED },
  {
    title: 'TIES, wanda mask, density 0.2',
    method: 'ties',
    parameters: { ...MASK, compensation: 'off' },
    each: TRIMMED,
  },
  {
    title: 'TIES, wanda mask + compensation, density 0.2',
    method: 'ties',
    parameters: { ...MASK, compensation: 'cg' },
    each: TRIMMED,
  },
  { title: 'task arithmetic', method: 'task_arithmetic', parameters: AUTO, each: WEIGHT, candidate: true },
  { title: 'Gram merge, diagonal', method: 'gram', parameters: { ...AUTO, gram: 'diagonal' } },
  {
    title: 'Gram merge of the changes',
    method: 'gram',
    parameters: { ...AUTO, match: 'changes' },
    candidate: true,
  },
  { title: 'Gram merge', method: 'gram', parameters: AUTO, candidate: true },
  {
    title: 'Gram merge, outputs matched',
    method: 'gram',
    parameters: { ...AUTO, match: 'outputs' },
    candidate: true,
  },
];

interface Measured {
  row: Row;
  /** On the text the models wrote for λ. */
  own: number | undefined;
  test: number;
}

/** The YAML of a row; undefined where the method does not take as many models. */
function recipeOf(row: Row, { contributors, calibration }: ModelSet): string | undefined {
  if (row.pair && contributors.length !== 2) return undefined;
  const auto = row.parameters?.lambda === 'auto';
  const parameters = {
    ...row.parameters,
    ...(auto && { calibration_windows: calibration.windows, calibration_window: calibration.length }),
  };
  const first = row.pair === 'from the first';
  const base = row.baseless ? '' : `base_model: ${first ? contributors[0] : 'base'}\n`;
  const models = first ? contributors.slice(1) : contributors;
  const list = models
    .map((model) => `  - ${JSON.stringify({ model, parameters: row.each ?? {} })}\n`)
    .join('');
  return `merge_method: ${row.method}\n${base}models:\n${list}parameters: ${JSON.stringify(parameters)}\ndtype: float32\n`;
}

/** Geometric mean over texts. */
async function perplexity(
  texts: readonly number[][],
  of: (ids: number[]) => Promise<number>,
): Promise<number> {
  let sum = 0;
  for (const ids of texts) sum += Math.log(await of(ids));
  return Math.exp(sum / texts.length);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const { AMALGAM_GOLDEN: reference } = process.env;
const sets = modelSets(reference ?? '.').filter(({ models }) => existsSync(models.root));
const table = new Map<string, string[]>();
const figure = (value: number) => value.toPrecision(4);

afterAll(() => {
  for (const [title, cells] of table) say(`| ${title} | ${cells.join(' | ')} |`);
});

describe.each(sets)('$name', (set) => {
  const measured: Measured[] = [];
  let texts: ReturnType<ModelSet['texts']>;
  const at = sets.indexOf(set);
  const put = (title: string, cell: string) => {
    const cells = table.get(title) ?? sets.map(() => '–');
    cells[at] = cell;
    table.set(title, cells);
    say(`${set.name}, ${title}: ${cell}`);
  };
  const onTest = (merge: NodeMerge) =>
    perplexity(
      texts.map(({ test }) => test),
      (ids) => merge.perplexity(ids, set.protocol),
    );

  beforeAll(() => {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    texts = set.texts();
  });

  it('base and parents', async () => {
    for (const model of ['base', ...set.contributors]) {
      const recipe = `merge_method: linear\nmodels: [${JSON.stringify({ model, parameters: WEIGHT })}]\ndtype: float32\n`;
      const value = await onTest(await calibrateInNode(recipe, set.models));
      const place = set.contributors.indexOf(model);
      put(place < 0 ? 'base' : `parent ${place + 1}`, figure(value));
    }
  }, 3_600_000);

  it.each(ROWS)(
    '$title',
    async (row) => {
      const recipe = recipeOf(row, set);
      if (!recipe) return;
      const begun = performance.now();
      const merge = await calibrateInNode(recipe, set.models);
      const lambda = merge.report.lambda?.chosen;
      const own = merge.report.lambda?.whole?.perplexity;
      const test = await onTest(merge);
      measured.push({ row, own, test });
      put(row.title, `${figure(test)}${lambda === undefined ? '' : ` (${lambda})`}`);
      say(`  own text ${own?.toFixed(4) ?? '–'}, ${((performance.now() - begun) / 1000).toFixed(0)} s`);
      expect(test).toBeGreaterThan(1);
    },
    3_600_000,
  );

  const least = (rows: readonly Measured[], of: (row: Measured) => number) =>
    rows.reduce((a, b) => (of(b) < of(a) ? b : a));

  it('the recommended one', () => {
    const candidates = measured.filter(({ row }) => row.candidate);
    const chosen = least(candidates, ({ own }) => own!);
    const best = least(measured, ({ test }) => test);
    put('**recommended**', `${figure(chosen.test)} (${chosen.row.title})`);
    put('above the best row', `${(100 * (chosen.test / best.test - 1)).toFixed(1)} %`);
    expect(candidates.length).toBe(4);
  });
});
