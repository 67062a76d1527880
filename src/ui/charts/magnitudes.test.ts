import { expect, test } from 'vitest';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import { curveOf, magnitudeBars, shareAbove } from '../inspector/ChangeCharts';

/** A tensor whose changes are `values`, binned as the engine bins them. */
function statisticsOf(values: number[]): DeltaStatistics {
  const words = new Uint32Array(new Float32Array(values.map(Math.abs)).buffer);
  const counts = new Uint32Array(2048);
  for (const word of words) counts[word >>> 20]! += 1;
  const square = values.reduce((sum, v) => sum + v * v, 0);
  return {
    name: 'x',
    layer: 0,
    module: 'x',
    shape: [values.length],
    dtype: 'F32',
    elements: values.length,
    products: [
      [1, 0],
      [0, square],
    ],
    contributors: [{ id: 'a', histogram: { first: 0, counts } }],
    sample: { rows: 1, cols: 0, base: new Float32Array(0), changes: [new Float32Array(0)] },
    nonFinite: 0,
  };
}

const values = Array.from({ length: 4000 }, (_, i) => (i % 2 ? 1 : -1) * 0.001 * 1.002 ** i);
const curve = curveOf(statisticsOf(values), 'a')!;

test('bars hold every element of their ten octaves once', () => {
  const { bars, below } = magnitudeBars(curve);
  expect(bars.reduce((sum, b) => sum + b.count, 0) + below).toBe(4000);
  for (const [i, bar] of bars.entries()) {
    expect(bar.high).toBe(bars[i + 1]?.low ?? bar.high);
    const inside = values.filter((v) => Math.abs(v) >= bar.low && Math.abs(v) < bar.high).length;
    expect(bar.count).toBe(inside);
  }
});

test('a threshold cuts a bar where it should', () => {
  expect(shareAbove({ low: 1, high: 2, count: 9 }, 1.25)).toBe(0.75);
  expect(shareAbove({ low: 1, high: 2, count: 9 }, 3)).toBe(0);
});

test('zeros alone have no curve', () => {
  expect(curveOf(statisticsOf([0, 0, -0]), 'a')).toBeUndefined();
  expect(curveOf(statisticsOf([1, 2]), 'stranger')).toBeUndefined();
});

test('curves of all tensors are parts of one table of edges: thousands of tables block a page for seconds', () => {
  const others = [[0.5, 3], [1e-6], values.slice(0, 100)].map((own) => curveOf(statisticsOf(own), 'a')!);
  for (const { edges } of others) expect(edges.buffer).toBe(curve.edges.buffer);
});
