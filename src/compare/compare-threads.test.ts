import { expect, test } from 'vitest';
import { comparingThreads } from './compare-threads';
import type { TensorPair } from './tensor-pairs';

/** As many pairs of matrices of so many MiB of Δ. */
const matrices = (count: number, mebibytes: number): TensorPair[] =>
  Array.from(
    { length: count },
    () => ({ base: { shape: [mebibytes * 256, 1024] } }) as unknown as TensorPair,
  );

test('threads are as many as cores, unless Δ could no longer stay on them', () => {
  expect(comparingThreads(matrices(100, 16), 2)).toBe(2);
  expect(comparingThreads(matrices(100, 16), 16)).toBe(8);
  expect(comparingThreads(matrices(100, 16), 1)).toBe(1);
  expect(comparingThreads(matrices(100, 200), 2)).toBe(2);
  expect(comparingThreads(matrices(100, 400), 2)).toBe(1);
  expect(comparingThreads(matrices(100, 400), 8)).toBe(8);
  expect(comparingThreads([...matrices(100, 16), ...matrices(1, 400)], 2)).toBe(2);
  expect(comparingThreads(matrices(100, 4000), 2)).toBe(2);
});
