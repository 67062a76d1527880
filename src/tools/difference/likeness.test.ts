import { expect, test } from 'vitest';
import { energy, likenessOf } from './likeness';
import { floorF32 } from './tensor-difference';
import { cutRows, matrixShape } from './tensor-pairs';

const whole = (...values: number[]) => ({ values: Float64Array.from(values), complete: true });
const part = (...values: number[]) => ({ values: Float64Array.from(values), complete: false });

test('rank95 by hand: squares 90, 4, 3, 3 reach 95 % with the third', () => {
  const values = [90, 4, 3, 3].map(Math.sqrt);
  expect(likenessOf(whole(...values), 100, 100)).toMatchObject({
    rank95: 3,
    rank95IsBound: false,
    potentialLora: true,
  });
  expect(likenessOf(whole(...values), 100, 30)).toMatchObject({ potentialLora: false }); // 3 is not below 0.1 · 30
});

test('of a truncated spectrum the exact norm decides, and what lies beyond is a bound', () => {
  const values = [3, 2, 1];
  expect(energy(Float64Array.from(values))).toBe(14);
  expect(likenessOf(part(...values), 14.5, 1000)).toMatchObject({ rank95: 3, rank95IsBound: false });
  expect(likenessOf(part(...values), 20, 1000)).toMatchObject({
    rank95: 4,
    rank95IsBound: true,
    effectiveRank: 3,
    effectiveRankIsBound: true,
    potentialLora: false,
  });
});

test('the effective rank counts σ > 1e-5', () => {
  expect(likenessOf(whole(1, 2e-5, 0.9e-5), 1, 50)).toMatchObject({
    effectiveRank: 2,
    effectiveRankIsBound: false,
  });
  expect(likenessOf(part(1, 2e-5, 0.9e-5), 1, 50)).toMatchObject({
    effectiveRank: 2,
    effectiveRankIsBound: false,
  });
});

test('a threshold in f64 becomes the f32 that compares alike', () => {
  for (const x of [1e-6, 0.1, 0.5, 1e-3, 3]) {
    const f = floorF32(x);
    expect(Math.fround(f)).toBe(f);
    expect(f).toBeLessThanOrEqual(x);
    expect(x - f).toBeLessThan(1.2e-7 * x);
  }
});

test('tiles are whole rows, many of them in chunks of 64; an over-long row is cut', () => {
  expect(cutRows({ rows: 300, cols: 10 }, 1300)).toEqual([
    { begin: 0, end: 1280 },
    { begin: 1280, end: 2560 },
    { begin: 2560, end: 3000 },
  ]);
  expect(cutRows({ rows: 5, cols: 10 }, 25)).toEqual([
    { begin: 0, end: 20 },
    { begin: 20, end: 40 },
    { begin: 40, end: 50 },
  ]);
  expect(cutRows({ rows: 2, cols: 5000 }, 4200)).toEqual([
    { begin: 0, end: 4096 },
    { begin: 4096, end: 5000 },
    { begin: 5000, end: 9096 },
    { begin: 9096, end: 10000 },
  ]);
  expect(matrixShape([])).toEqual({ rows: 1, cols: 1 });
  expect(matrixShape([2, 3, 4])).toEqual({ rows: 6, cols: 4 });
});
