import { expect, test } from 'vitest';
import { collectProblems } from '../../inputs/problems';
import type { TensorView } from '../../inputs/tensor-view';
import { methodById } from '../methods';
import type { TensorPlan } from './plan';
import { spectralBytes } from './spectral-cost';

/** 32 square matrices of two models. */
function cost(id: string, side: number, parameters = {}, view: Partial<TensorView> = {}) {
  const problems = collectProblems();
  const tensors = Array.from({ length: 32 }, (_, i) => ({
    ...{ name: `${i}`, shape: [side, side], role: { kind: 'linear' }, parameters },
    models: [1, 2].map(() => ({ view })),
  })) as unknown as TensorPlan[];
  const bytes = spectralBytes(methodById.get(id)!, tensors, problems);
  return { bytes, notes: problems.list().map(({ message }) => message) };
}

test('says how long the directions of a large model take, and what they hold', () => {
  const { bytes, notes } = cost('tsv_m', 4096, { rank: 256 });
  expect(notes).toEqual([
    expect.stringMatching(/^Singular directions of 32 matrices take about 29.min of one core\.$/),
  ]);
  // left, right and a third on the way, of 2 · 256 directions in f64
  expect(bytes).toBe(3 * 8 * 8192 * 512);
  expect(cost('tsv_m', 4096, { rank: 64 }).notes[0]).toMatch(/about 2.min/);
});

test('a small model, LoRAs and other methods take no time', () => {
  const lowRank = { rank: 8 } as NonNullable<TensorView['lowRank']>;
  expect(cost('tsv_m', 256, { rank: 256 }).notes).toEqual([]);
  expect(cost('iso_c', 4096, { rank: 256 }, { onBase: true, lowRank }).notes).toEqual([]);
  expect(cost('ties', 4096)).toEqual({ bytes: 0, notes: [] });
  const knots = cost('ties', 4096, { space: 'knots' }, { onBase: true, lowRank });
  expect(knots).toEqual({ bytes: 24 * 8192 * 16 + 12 * 16 * 4096, notes: [] });
});
