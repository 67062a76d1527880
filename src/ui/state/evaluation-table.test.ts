import { expect, test } from 'vitest';
import { methodById } from '../../merge/methods/index';
import type { EvaluateReport } from '../../reports/evaluate';
import { sampleModels } from '../worker.test.fixture';
import { type EvaluationRow, evaluationRows, isPinned, recipeByMethod, targetKey } from './evaluation-rows';
import {
  type EvaluationSlice,
  type EvaluationText,
  initialEvaluation,
  type Outcome,
} from './evaluation-state';
import {
  bestMerge,
  dotAt,
  dotScale,
  evaluationTable,
  groupCells,
  loneMerge,
  measuringProgress,
  missingCells,
  outcomeKey,
  rankRows,
  tableErrors,
} from './evaluation-table';
import { textHashes } from './evaluation-texts';
import { setContributorParameter, setEnabled, setMethod } from './recipe-state';
import { sampleRecipe } from './roles';

const sample = sampleRecipe(sampleModels);
const recipe = setMethod(sample, methodById.get(sample.method), methodById.get('ties')!);
const rows = evaluationRows(recipe, sampleModels);
const texts: EvaluationText[] = ['tales', 'recipes'].map((name) => ({
  id: `own ${name}`,
  name,
  text: `${name} `.repeat(1000),
  sha256: { quick: `beginning of ${name}`, full: name },
  origin: 'own',
  chosen: true,
}));
const empty: EvaluationSlice = { ...initialEvaluation, texts };
const row = (id: string) => rows.find((r) => r.id === id) as EvaluationRow;

const report = (meanNll: number): EvaluateReport => ({
  perplexity: Math.exp(meanNll),
  meanNll,
  tokens: 10,
  bitsPerByte: 1,
  protocol: { window: 256, stride: 128, bos: 0 },
  engine: 'cpu',
  adapter: '',
  seconds: 2,
  peakBytes: 0,
});

/** The table's state after these losses, row by row and text by text, were measured. */
function measured(losses: Record<string, (number | Outcome)[]>, slice = empty): EvaluationSlice {
  const outcomes = new Map(slice.outcomes);
  const lastOf = new Map(slice.lastOf);
  for (const [id, values] of Object.entries(losses)) {
    const target = targetKey(row(id).target);
    lastOf.set(id, { target, title: row(id).label });
    values.forEach((value, i) => {
      const outcome = typeof value === 'number' ? { report: report(value), bytes: 4 } : value;
      outcomes.set(outcomeKey(target, texts[i] as EvaluationText, slice), outcome);
    });
  }
  return { ...slice, outcomes, lastOf };
}

test('rows are base, contributors as the recipe names them, and every method that fits them', () => {
  expect(rows.slice(0, 4).map((r) => r.target)).toEqual([
    { model: 'samples/base' },
    { model: 'samples/base+samples/kitchen' },
    { model: 'samples/base+samples/harbour' },
    { model: 'samples/workshop' },
  ]);
  const merges = rows.filter((r) => r.group === 'merges').map((r) => r.method?.id);
  expect(merges).toContain('ties');
  expect(merges).toContain('linear');
  // three contributors are too many for these
  expect(merges).not.toContain('slerp');
  expect(merges).not.toContain('passthrough');
  expect(rows.filter((r) => r.current).map((r) => r.id)).toEqual(['method ties']);
  const two = evaluationRows(setEnabled(recipe, 'samples/workshop', false), sampleModels);
  expect(two.map((r) => r.id)).not.toContain('model samples/workshop');
});

test('no two rows have the same name', () => {
  expect(new Set(rows.map((r) => r.label)).size).toBe(rows.length);
});

test('another method takes the densities of the recipe, as choosing it in the picker does', () => {
  const dare = row('method dare_linear').target;
  expect('recipe' in dare && dare.recipe.models?.map((m) => m.parameters.density)).toEqual([0.2, 0.2, 0.2]);
  expect(recipeByMethod(recipe, methodById.get('ties')!)).toBe(recipe);
});

test('methods are rows only once they are measured or planned', () => {
  const shown = (slice: EvaluationSlice) => evaluationTable(rows, slice).rows.map((r) => r.row.id);
  const own = [
    'base',
    'model samples/kitchen',
    'model samples/harbour',
    'model samples/workshop',
    'method ties',
  ];
  expect(shown(empty)).toEqual(own);
  expect(shown(measured({ 'method linear': [0.5] }))).toEqual([...own, 'method linear']);
});

test('a merge that the base beats is not marked; alone it is told where it stands', () => {
  const ties = { 'method ties': [0.6, 0.7] };
  const models = { base: [0.4, 0.7], 'model samples/kitchen': [0.7, 0.8] };
  const both = evaluationTable(rows, measured({ ...models, ...ties, 'method linear': [0.7, 0.6] })).rows;
  expect(both.filter((r) => r.row.group === 'merges' && r.mean?.best)).toEqual([]);
  expect(bestMerge(both)?.base).toBeCloseTo(Math.exp(0.55), 12);
  expect(loneMerge(both)).toBeNull();
  const alone = evaluationTable(rows, measured({ ...models, ...ties })).rows;
  expect(loneMerge(alone)?.against).toEqual([
    { label: 'base', better: 0, worse: 1, of: 2 },
    { label: 'kitchen', better: 2, worse: 0, of: 2 },
  ]);
});

test('the least of each column and of the mean is marked among models, and among merges where the base is not as good', () => {
  const { rows: table } = evaluationTable(
    rows,
    measured({
      base: [0.4, 0.9],
      'model samples/kitchen': [0.5, 0.5],
      'method ties': [0.6, 0.7],
      'method linear': [0.45, 0.8],
    }),
  );
  const best = Object.fromEntries(
    table.map((r) => [r.row.id, [...r.cells.map((c) => c.state === 'done' && c.best), r.mean?.best]]),
  );
  expect(best.base).toEqual([true, false, false]);
  expect(best['model samples/kitchen']).toEqual([false, true, true]);
  expect(best['method ties']).toEqual([false, true, false]);
  expect(best['method linear']).toEqual([false, false, true]);
  const linear = table.find((r) => r.row.id === 'method linear');
  expect(linear?.mean?.perplexity).toBeCloseTo(Math.exp(0.625), 12);
  expect(linear?.seconds).toBe(4);
  expect(bestMerge(table)).toMatchObject({ best: { row: { id: 'method linear' } }, of: 2 });
  expect(bestMerge(table)?.base).toBeCloseTo(Math.exp(0.65), 12);
  expect(bestMerge(table.filter((r) => r.row.id !== 'method ties'))).toBeNull();
  expect(
    rankRows(table)
      .map((r) => r.row.id)
      .slice(-2),
  ).toEqual(['method linear', 'method ties']);
});

test('no mean before every text is measured', () => {
  const { rows: table } = evaluationTable(rows, measured({ base: [0.4] }));
  expect(table[0]?.mean).toBeNull();
  expect(table[0]?.cells.map((c) => c.state)).toEqual(['done', 'none']);
});

test('after an edit the merge shows its past dimmed, and takes part in no comparison', () => {
  const before = measured({ 'method ties': [0.6, 0.7], 'method linear': [0.65, 0.8] });
  const edited = setContributorParameter(recipe, 'samples/kitchen', 'density', 0.5);
  const { rows: table } = evaluationTable(evaluationRows(edited, sampleModels), before);
  const ties = table.find((r) => r.row.id === 'method ties');
  expect(ties?.staleTitle).toBe('TIES 0.20');
  expect(ties?.cells.every((c) => c.state === 'done' && c.stale && !c.best)).toBe(true);
  // back to the recipe that was measured: its numbers are still there
  expect(evaluationTable(rows, before).rows.find((r) => r.row.id === 'method ties')?.staleTitle).toBeNull();
});

test('the same model, text and protocol are measured once; failures are tried again', () => {
  const error = { code: 'TextTooShort', message: 'Too short.', hint: 'Longer.' } as const;
  const slice = measured({ base: [0.4, { error }] });
  expect(missingCells([row('base')], slice).map((c) => c.textName)).toEqual(['recipes']);
  expect(missingCells([row('base')], { ...slice, window: 64, stride: 32 })).toHaveLength(2);
  expect(missingCells([row('base')], { ...slice, amount: 'full' })).toHaveLength(2);
  const { rows: table } = evaluationTable(rows, slice);
  expect(tableErrors(table)).toEqual([{ rows: ['base'], error }]);
});

test('numbers of an earlier visit are shown again, those of methods too, and say so', () => {
  const key = (id: string) => outcomeKey(targetKey(row(id).target), texts[0] as EvaluationText, empty);
  const earlier = (meanNll: number, at: number): Outcome => ({
    report: report(meanNll),
    bytes: 4,
    earlier: at,
  });
  const slice: EvaluationSlice = {
    ...empty,
    outcomes: new Map([
      [key('base'), earlier(0.4, 7)],
      [key('method linear'), earlier(0.5, 9)],
    ]),
  };
  const { rows: table } = evaluationTable(rows, slice);
  expect(table.map((r) => [r.row.id, r.earlier]).filter(([, at]) => at !== null)).toEqual([
    ['base', 7],
    ['method linear', 9],
  ]);
  expect(missingCells([row('base')], slice).map((c) => c.textName)).toEqual(['recipes']);
});

test('only what the same name means on another day is kept: samples and commits, no folder of one’s own', () => {
  const models = sampleModels.map((m) =>
    m.ref === 'samples/harbour' ? { ...m, origin: 'local' as const } : m,
  );
  expect(isPinned({ model: 'samples/base' }, models)).toBe(true);
  expect(isPinned({ model: 'samples/base+samples/kitchen' }, models)).toBe(true);
  expect(isPinned({ model: 'samples/base+samples/harbour' }, models)).toBe(false);
  expect(isPinned({ model: 'unknown' }, models)).toBe(false);
  expect(isPinned(row('method ties').target, models)).toBe(false);
  expect(isPinned(row('method ties').target, sampleModels)).toBe(true);
});

test('of a group at work what is done already has its number', () => {
  const cells = missingCells([row('base'), row('method linear')], empty);
  const work = { groups: [cells], at: 0 };
  const { rows: table } = evaluationTable(rows, { ...measured({ base: [0.4] }), work });
  expect(table[0]?.cells.map((c) => c.state)).toEqual(['done', 'running']);
});

test('a text shorter than the quick part is the same measurement either way', async () => {
  const short = { ...(texts[0] as EvaluationText), sha256: await textHashes('a few words') };
  expect(outcomeKey('model m', short, { ...empty, amount: 'quick' })).toBe(
    outcomeKey('model m', short, { ...empty, amount: 'full' }),
  );
});

test('rows that lack the same texts are measured side by side, and the time left follows the characters', () => {
  const cells = missingCells(rows.slice(0, 2), { ...empty, amount: 'full' });
  expect(cells.map((c) => `${c.rowLabel} ${c.textName}`)).toEqual([
    'base tales',
    'kitchen tales',
    'base recipes',
    'kitchen recipes',
  ]);
  const progress = { phase: 'running', done: 50, total: 100, rate: 1, secondsLeft: 1 } as const;
  // base lacks one text, kitchen both
  const groups = groupCells(cells.slice(1));
  expect(groups.map((g) => g.map((c) => `${c.rowLabel} ${c.textName}`))).toEqual([
    ['kitchen tales', 'kitchen recipes'],
    ['base recipes'],
  ]);
  expect(groupCells(cells)).toHaveLength(1);
  // 6000 and 8000, then 8000 characters; the first group and half of the second are done
  const { share, secondsLeft } = measuringProgress({ groups, at: 1 }, progress, 9);
  expect(share).toBeCloseTo(18_000 / 22_000, 12);
  expect(secondsLeft).toBeCloseTo(2, 12);
});

test('eight rows at most go side by side; what runs every model over text first goes last and alone', () => {
  const groups = groupCells(missingCells([...rows].reverse(), empty));
  const ids = groups.map((g) => [...new Set(g.map((c) => c.rowId))]);
  expect(Math.max(...ids.map((g) => g.length))).toBe(8);
  expect(ids.flat()).toHaveLength(rows.length);
  expect(ids.at(-1)).toEqual(['method gram']);
});

test('dots lie on one linear scale; a merge that broke is beyond its end', () => {
  const scaleOf = (losses: Parameters<typeof measured>[0]) =>
    dotScale(evaluationTable(rows, measured(losses)).rows);
  expect(scaleOf({ base: [1, 1] })).toBeNull();
  expect(scaleOf({ base: [1, 1], 'method ties': [1, 1] })).toBeNull();
  const near = scaleOf({ base: [1, 1], 'model samples/kitchen': [1.2, 1.2], 'method ties': [9, 9] });
  expect(near?.least).toBeCloseTo(Math.exp(1), 12);
  expect(near?.most).toBeCloseTo(Math.exp(1.2), 12);
  expect(near && dotAt(near, (Math.exp(1) + Math.exp(1.2)) / 2)).toBeCloseTo(0.5, 12);
  expect(near && dotAt(near, Math.exp(9))).toBeNull();
  // of two there is no middle to be far from
  const two = scaleOf({ base: [1, 1], 'method ties': [9, 9] });
  expect(two?.most).toBeCloseTo(Math.exp(9), 6);
});
