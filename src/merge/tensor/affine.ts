/** Coefficient tables of the weighted-sum kernel: Σ cᵢvᵢ written so that equal vectors give their own bits. */

import type { BackendBuffer } from '../../backend/backend';
import { exactFloats } from '../../backend/exact';
import { weightedSum } from '../../backend/kernels/sums';
import type { TensorTask } from './tensor-task';
import { packing } from './tile-encoding';

/** Coefficients that add up to 1 within this are an affine combination; far below what f32 resolves. */
const AFFINE = 1e-9;

/** How vectors in neighboring slots are added up. */
export interface WeightedSum {
  /** First slot, and how many vectors from there. */
  slot: number;
  count: number;
  /** The vector all others are held against: the first that counts anywhere. */
  anchor: number;
  /** Group of an element e: ⌊e / per⌋ mod groups. */
  per: number;
  groups: number;
  /** Per group: b, k, c₀ … (shaders/sums/weighted-sum.wgsl). */
  table: Float32Array<ArrayBuffer>;
}

/**
 * Lays out Σ cᵢvᵢ for groups of elements.
 * @param coefficients one list per group
 * @param form `changes`: vector 0 is the base with coefficient 1, the others are changes to it
 */
export function layOut(
  coefficients: readonly (readonly number[])[],
  form: 'weights' | 'changes',
  where: { slot: number; per: number },
): WeightedSum {
  const count = coefficients[0]!.length;
  const counting = Array.from({ length: count }, (_, i) => coefficients.some((c) => c[i] !== 0));
  const anchor = Math.max(0, counting.indexOf(true));
  const table = new Float32Array(coefficients.length * (count + 2));
  for (const [g, c] of coefficients.entries()) {
    const sum = c.reduce((a, b) => a + b, 0);
    const affine = form === 'weights' && Math.abs(sum - 1) <= AFFINE;
    table.set([affine ? 1 : c[anchor]!, affine ? 1 : 0, ...c], g * (count + 2));
  }
  const { slot, per } = where;
  return { slot, count, anchor, per, groups: coefficients.length, table: exactFloats(table) };
}

/** One group for the whole tensor. */
export const WHOLE = 0xffffffff;

/**
 * Enqueues the sum of the tile's vectors, packed, into `work.packed` and its change into `work.stats`; the table is in
 * `coefficients`.
 */
export function runWeightedSum(
  task: TensorTask,
  { slot, count, anchor, per, groups }: Omit<WeightedSum, 'table'>,
  coefficients: BackendBuffer,
  elements: number,
): void {
  const { work } = task;
  const { values, packed, stats: sums, status, stride } = work;
  work.engine.run(weightedSum, {
    params: { elements, slot: slot * stride, stride, count, anchor, per, groups, ...packing(task) },
    buffers: { values, coefficients, packed, sums, status },
  });
}
