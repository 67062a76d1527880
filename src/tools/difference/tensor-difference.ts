/** From the sums over a pair of tensors to the figures of a report. */

import { tensorRole } from '../../models/tensor-role';
import type { RowNorms, TensorDifference } from './report';
import { matrixShape, piecesOf, type TensorPair, valueDtype } from './tensor-pairs';

/** Added to the base's norm, so that a base of zeros gives a number. */
const FLOOR = 1e-10;
/** A tensor is modified when more than this share of it changed, or when it changed by more than this share. */
const MODIFIED = 0.01;
const STRIP_RUNS = 64;

/** The largest f32 that is not above x: what a comparison in f32 with a threshold in f64 needs. */
export function floorF32(x: number): number {
  const rounded = Math.fround(x);
  if (rounded <= x) return rounded;
  const bits = new Uint32Array([0]);
  const float = new Float32Array(bits.buffer);
  float[0] = rounded;
  bits[0]!--;
  return float[0]!;
}

/** Sums over a tensor or a piece of it; `a` is the base, `b` the fine-tune. */
export interface PairSums {
  elements: number;
  /** Σ|Δ| */
  absolute: number;
  /** ΣΔ², Σa², Σb², Σab */
  squares: number;
  baseSquares: number;
  tunedSquares: number;
  product: number;
  /** max|Δ| */
  largest: number;
  /** Numbers of elements: |Δ| above the threshold, of opposite sign, with different bits. */
  changed: number;
  flipped: number;
  different: number;
  /** ΣΔ² of every row. */
  rowSquares: Float64Array;
}

/** Sums of no elements, over so many rows. */
export function noSums(rows = 0): PairSums {
  const zero = { absolute: 0, squares: 0, baseSquares: 0, tunedSquares: 0, product: 0, largest: 0 };
  return { elements: 0, ...zero, changed: 0, flipped: 0, different: 0, rowSquares: new Float64Array(rows) };
}

/** The sums of a tensor from those of its pieces, in their order. */
export function joinSums(pair: TensorPair, parts: readonly PairSums[]): PairSums {
  const { rows, cols } = matrixShape(pair.base.shape);
  const total = noSums(rows);
  for (const [i, { begin }] of piecesOf(pair).entries()) {
    const { largest, rowSquares, ...sums } = parts[i]!;
    for (const [key, sum] of Object.entries(sums)) total[key as keyof typeof sums] += sum;
    total.largest = Math.max(total.largest, largest);
    const first = Math.floor(begin / cols);
    // an iterator of many rows takes longer than their pass
    for (let row = 0; row < rowSquares.length; row++) total.rowSquares[first + row]! += rowSquares[row]!;
  }
  return total;
}

/** Everything but spectrum and time. */
export function describeDifference(
  { name, base, tuned }: TensorPair,
  sums: PairSums,
): Omit<TensorDifference, 'seconds' | 'stableRank'> {
  const { elements } = sums;
  const role = tensorRole(name, base.shape);
  const share = (count: number) => (elements > 0 ? count / elements : 0);
  const normBase = Math.sqrt(sums.baseSquares);
  const normFinetuned = Math.sqrt(sums.tunedSquares);
  const normDelta = Math.sqrt(sums.squares);
  const relative = relativeDifference(normDelta, normBase);
  const changedRatio = share(sums.changed);
  return {
    name,
    layer: role.layer,
    module: role.module,
    shape: [...base.shape],
    dtype: { base: valueDtype(base), finetuned: valueDtype(tuned) },
    elements,
    meanAbs: share(sums.absolute),
    maxAbs: sums.largest,
    normBase,
    normFinetuned,
    normDelta,
    relative,
    changedRatio,
    signFlipRatio: share(sums.flipped),
    bitDifferentRatio: share(sums.different),
    cosine: cosine(sums.product, normBase, normFinetuned),
    rows: describeRows(sums.rowSquares),
    modified: changedRatio > MODIFIED || relative > MODIFIED,
  };
}

export function relativeDifference(normDelta: number, normBase: number): number {
  return normDelta / (normBase + FLOOR);
}

/** 1 where both are zero, 0 where one is. */
function cosine(product: number, a: number, b: number): number {
  if (a === 0 && b === 0) return 1;
  if (a === 0 || b === 0) return 0;
  return Math.max(-1, Math.min(1, product / (a * b)));
}

function describeRows(squares: Float64Array): RowNorms {
  const count = squares.length;
  if (count === 0) return { count, min: 0, mean: 0, max: 0, strip: [] };
  let min = Number.POSITIVE_INFINITY;
  let max = 0;
  let sum = 0;
  for (let row = 0; row < count; row++) {
    const norm = Math.sqrt(squares[row]!);
    if (norm < min) min = norm;
    if (norm > max) max = norm;
    sum += norm;
  }
  const runs = Math.min(STRIP_RUNS, count);
  const strip = Array.from({ length: runs }, (_, i) => {
    const run = squares.subarray(Math.floor((i * count) / runs), Math.floor(((i + 1) * count) / runs));
    return Math.sqrt(run.reduce((total, square) => total + square, 0) / run.length);
  });
  return { count, min, mean: sum / count, max, strip };
}
