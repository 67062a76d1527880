import { expect, test } from 'vitest';
import { curveWords, keptByRank, type MeasuredModule, moduleRank, rankKeeping } from './lora';

const module = (values: number[], squares = values.reduce((sum, s) => sum + s * s, 0)) =>
  ({
    module: 'm',
    kind: 'linear',
    shape: [4, 4],
    rank: null,
    scale: null,
    squares,
    values,
  }) satisfies MeasuredModule;
const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ');

test('one rank for all modules keeps a share of what all of them change', () => {
  const kept = keptByRank([module([3, 1]), module([2, 2, 1])]);
  expect(kept.map((share) => Math.round(share * 19))).toEqual([13, 18, 19]);
  expect(rankKeeping(kept, 0.9)).toBe(2);
  expect(rankKeeping(kept, 0.95)).toBe(3);
  expect(rankKeeping([0.4, 0.8], 0.9)).toBeUndefined();
  expect(keptByRank([])).toEqual([]);
  expect([module([3, 1]), module([], 0), module([1], 9)].map((m) => moduleRank(m, 0.95))).toEqual([
    2,
    0,
    undefined,
  ]);
  expect(curveWords([module([], 0)])).toEqual(['Nothing changes in it.']);
});

test('the curve in words, and a change that no rank holds is called so', () => {
  expect(curveWords([module([3, 1, 0.1])]).map(plain)).toEqual([
    'Rank 2 keeps 90 %, rank 2 keeps 95 %, rank 2 keeps 99 % of the change.',
  ]);
  expect(curveWords([module([1, 1], 10)]).map(plain)).toEqual([
    'Rank 2, the largest looked at, keeps 20.0 % of the change.',
    'It leaves 89.4 % of the difference: this change is not low-rank.',
  ]);
});
