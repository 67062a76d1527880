/**
 * Singular values and vectors of a matrix, most often a Δ. Small matrices are decomposed exactly on the host; others by a randomized range
 * finder (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1), whose products run on the engine in an order that
 * both engines share, so that they give the same factors to the bit.
 */
import { maskKey, normals } from '../../backend/philox';
import { type Columns, firstColumns, product } from '../../linalg/columns';
import { POWER_ITERATIONS, rangeBasis, sketchWidth } from '../../linalg/householder';
import { type Svd, singularValues, smallSvd } from '../../linalg/small-svd';
import type { Matrix } from './panel-products';

/** Matrices whose smaller side is at most this, and that have at most so many elements, are decomposed exactly. */
const EXACT_SIDE = 256;
const EXACT_ELEMENTS = 2 ** 22;

interface DecomposeOptions {
  /** Singular values wanted; the exact way finds all there are. */
  count: number;
  seed: number;
  /** Name of the tensor: with the seed it determines the random numbers. */
  name: string;
  /** Exact or randomized; default: by the size of the matrix. */
  way?: 'exact' | 'randomized';
}

/** True when the values found are all that are not zero. */
export interface Spectrum {
  values: Float64Array;
  complete: boolean;
}

export function decomposesExactly({ rows, cols }: Pick<Matrix, 'rows' | 'cols'>): boolean {
  return Math.min(rows, cols) <= EXACT_SIDE && rows * cols <= EXACT_ELEMENTS;
}

/** The largest singular values, descending. @throws what reading and the engine throw */
export async function spectrumOf(matrix: Matrix, options: DecomposeOptions): Promise<Spectrum> {
  if (goesExactly(matrix, options)) return { values: singularValues(await matrix.values()), complete: true };
  const { range, isWhole } = await rangeOf(matrix, options);
  const values = singularValues(await matrix.transposedTimes(range));
  return { values: isWhole ? values : values.slice(0, options.count), complete: isWhole };
}

/** The largest singular values with their vectors. @throws what reading and the engine throw */
export async function decompose(
  matrix: Matrix,
  options: DecomposeOptions,
): Promise<Svd & { complete: boolean }> {
  if (goesExactly(matrix, options)) return { ...smallSvd(await matrix.values()), complete: true };
  const { range, isWhole } = await rangeOf(matrix, options);
  // Δ ≈ Q·(ΔᵀQ)ᵀ, and ΔᵀQ = V·S·Wᵀ gives Δ ≈ (Q·W)·S·Vᵀ
  const { s, u: v, v: w } = smallSvd(await matrix.transposedTimes(range));
  const rank = isWhole ? s.length : Math.min(options.count, s.length);
  return {
    s: s.slice(0, rank),
    u: product(range, firstColumns(w, rank)),
    v: firstColumns(v, rank),
    complete: isWhole,
  };
}

function goesExactly(matrix: Matrix, { way }: DecomposeOptions): boolean {
  return way === undefined ? decomposesExactly(matrix) : way === 'exact';
}

/** An orthonormal basis Q of (almost) the range of Δ, rounded to f32 as it enters the products. */
async function rangeOf(
  matrix: Matrix,
  { count, seed, name }: DecomposeOptions,
): Promise<{ range: Columns; isWhole: boolean }> {
  const width = sketchWidth(matrix, count);
  const isWhole = width === Math.min(matrix.rows, matrix.cols);
  const start = gaussian(matrix.cols, width, maskKey(seed, 'svd', name));
  const q = await rangeBasis(matrix, start, isWhole ? 0 : POWER_ITERATIONS);
  for (let i = 0; i < q.data.length; i++) q.data[i] = Math.fround(q.data[i]!);
  return { range: q, isWhole };
}

/** A matrix of standard normal numbers. */
export function gaussian(rows: number, cols: number, key: [number, number]): Columns {
  return { rows, cols, data: normals(rows * cols, key) };
}
