import { expect, test } from 'vitest';
import { NBSP } from '../../formats/quantity';
import type { TensorReport } from '../../reports/job';
import { differenceOf, heatmap, layerGrid } from './heatmap-data';
import { differenceMetric, differenceText } from './metric-choice';
import { metricById } from './metrics';

const sparsity = metricById('trimmed');
const names = ['model.layers.0.mlp.up_proj.weight', 'model.layers.1.mlp.up_proj.weight', 'model.norm.weight'];
const planned = names.map((name, i) => ({
  name,
  layer: i < 2 ? i : null,
  module: 'mlp.up_proj',
  copied: false,
}));

function reports(kept: readonly (number | null)[]): Map<string, TensorReport> {
  return new Map(
    names.flatMap((name, i) => {
      const k = kept[i];
      if (k === null || k === undefined) return [];
      const report: TensorReport = {
        name,
        layer: i < 2 ? i : null,
        module: 'mlp.up_proj',
        shape: [100],
        dtype: 'BF16',
        elements: 100,
        copied: false,
        contributors: [{ id: 'a', kept: k, threshold: 0, norm: 1, keptNorm: 1 }],
        signConflict: 0,
        cosine: [[1]],
        baseNorm: 1,
        outputChange: 0,
        nonFinite: 0,
      };
      return [[name, report] as const];
    }),
  );
}

const mapOf = (kept: readonly (number | null)[]) =>
  heatmap(layerGrid(planned), reports(kept), sparsity, ['a']);

test('cells are B less A, and so is the mean', () => {
  const difference = differenceOf(mapOf([20, 40, 60]), mapOf([30, 40, 10]));
  const values = [...difference.rows.map((r) => r.cells[0]), ...difference.loose].map(
    (c) => c?.measured?.value,
  );
  expect(values.map((v) => Number(v?.toFixed(6)))).toEqual([-0.1, 0, 0.5]);
  expect(difference.mean).toBeCloseTo(0.4 / 3, 12);
});

test('what one side lacks has no difference', () => {
  const difference = differenceOf(mapOf([20, null, 60]), mapOf([30, 40, null]));
  const cells = [...difference.rows.map((r) => r.cells[0]), ...difference.loose];
  expect(cells.map((c) => c?.measured?.value.toFixed(2))).toEqual(['-0.10', undefined, undefined]);
});

test('a difference of predicted values has the errors of both', () => {
  const predicted = (value: number, error: number) => ({ value, weight: 1, error });
  const text = differenceText(sparsity, predicted(0.2, 0.01), predicted(0.5, 0.03)).replaceAll(NBSP, ' ');
  expect(text).toBe('≈ +30.0 pp ± 4.0 pp');
  expect(differenceText(sparsity, predicted(0.2, 0), predicted(0.5, 0)).replaceAll(NBSP, ' ')).toBe(
    '+30.0 pp',
  );
});

test('differences are signed in words', () => {
  const metric = differenceMetric(sparsity);
  expect(metric.format(0.125).replace(/\s/, ' ')).toBe('+12.5 pp');
  expect(metric.phrase(-0.125).replace(/\s/, ' ')).toMatch(/12.5.pp against A$/);
  expect(metric.phrase(0)).toBe('no difference');
  expect(metric.diverging).toBe(true);
});
