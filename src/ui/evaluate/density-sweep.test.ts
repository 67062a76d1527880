import { expect, test } from 'vitest';
import { targetKey } from '../state/evaluation-rows';
import { initialEvaluation } from '../state/evaluation-state';
import { outcomeKey } from '../state/evaluation-table';
import { sampleRecipe } from '../state/roles';
import { sampleModels } from '../worker.test.fixture';
import {
  bestPoint,
  parseDensities,
  proposedMethods,
  recipeAt,
  sweepCurves,
  sweepMethods,
  sweepRows,
} from './density-sweep';

const recipe = sampleRecipe(sampleModels);

test('densities are read in order, once each, and refused in words', () => {
  expect(parseDensities('0.5, 0.1;0.5  1')).toEqual([0.1, 0.5, 1]);
  for (const text of ['', '0.5', '0, 0.5', '0.5 1.1', 'a, 0.5'])
    expect(parseDensities(text)).toBeTypeOf('string');
  expect(parseDensities(Array.from({ length: 21 }, (_, i) => (i + 1) / 30).join())).toBeTypeOf('string');
});

test('only methods that keep a share of each change are swept', () => {
  const fitting = sweepMethods(recipe, sampleModels);
  const ids = fitting.map((m) => m.id);
  expect(ids).toEqual(expect.arrayContaining(['ties', 'dare_ties', 'dare_linear', 'della', 'breadcrumbs']));
  for (const id of ['linear', 'task_arithmetic', 'passthrough']) expect(ids).not.toContain(id);
  expect(proposedMethods(recipe, fitting)).toEqual(ids.filter((id) => /^(ties|dare_ties)$/.test(id)));
  expect(sweepMethods({ ...recipe, contributors: [] }, sampleModels)).toEqual([]);
});

test('every merge of the sweep has its density at every contributor', () => {
  const chosen = sweepMethods(recipe, sampleModels).filter((m) => m.id === 'ties' || m.id === 'dare_ties');
  const rows = sweepRows(recipe, sampleModels, chosen, [0.1, 0.5]);
  const made = rows.map(({ target }) => ('recipe' in target ? target.recipe : null));
  expect(made.map((r) => r?.mergeMethod).sort()).toEqual(['dare_ties', 'dare_ties', 'ties', 'ties']);
  expect(made[0]?.models?.map((m) => m.parameters.density)).toEqual([0.1, 0.1, 0.1]);
  expect(new Set(rows.map((r) => targetKey(r.target))).size).toBe(4);
  const taken = recipeAt(recipe, rows[3]!.method, 0.5);
  expect(taken.method).toBe(rows[3]!.method.id);
  expect(taken.contributors.every((c) => c.parameters.density === 0.5)).toBe(true);
});

test('curves hold means over the chosen texts; the best is the least, of equal ones the sparser', () => {
  const chosen = sweepMethods(recipe, sampleModels).filter((m) => m.id === 'ties');
  const rows = sweepRows(recipe, sampleModels, chosen, [0.1, 0.2, 0.3, 0.4]);
  const text = (id: string) => ({
    ...{ id, name: id, text: 'x', origin: 'own' as const, chosen: true },
    sha256: { quick: id, full: id },
  });
  const texts = [text('a'), text('b')];
  const evaluation = { ...initialEvaluation, texts };
  const losses = [[2, 4], [1, 3], [3, 1], [1]];
  const outcomes = new Map(
    rows.flatMap((row, i) =>
      (losses[i] ?? []).map((meanNll, t) => [
        outcomeKey(targetKey(row.target), texts[t]!, evaluation),
        {
          report: {
            ...{ perplexity: Math.exp(meanNll), meanNll, tokens: 9, bitsPerByte: null, seconds: 1 },
            ...{ protocol: { window: 256, stride: 128, bos: null }, engine: 'cpu' as const, adapter: '' },
          },
          bytes: null,
        },
      ]),
    ),
  );
  const [curve] = sweepCurves(rows, { ...evaluation, outcomes: outcomes as never });
  expect(curve?.points.map((p) => p.perplexity && Math.log(p.perplexity))).toEqual([
    3,
    expect.closeTo(2, 12),
    expect.closeTo(2, 12),
    null,
  ]);
  expect(bestPoint([curve!])).toMatchObject({ density: 0.2 });
  expect(bestPoint([])).toBeNull();
});
