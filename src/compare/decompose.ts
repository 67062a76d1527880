/**
 * Singular values and vectors of Δ. Small matrices are decomposed exactly on the host; others by a randomised range
 * finder (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1), whose products run on the engine in an order that
 * both engines share, so that they give the same factors to the bit.
 */
import { maskKey, philox } from '../backend/philox';
import { type Columns, firstColumns, product, zeroColumns } from '../linalg/columns';
import { thinQr } from '../linalg/householder';
import { largestSingularValue } from '../linalg/largest-singular-value';
import { type Svd, singularValues, smallSvd } from '../linalg/small-svd';
import type { DeltaMatrix } from './pair-task';
import { readDelta, times, transposedTimes } from './panel-products';

/** Matrices whose smaller side is at most this, and that have at most so many elements, are decomposed exactly. */
export const EXACT_SIDE = 256;
const EXACT_ELEMENTS = 2 ** 22;
/** Power iterations: the error is then within 1 % of the best for spectra as flat as i^-½. */
const POWER_ITERATIONS = 2;

export interface DecomposeOptions {
  /** Singular values wanted; where more than one is, the exact way finds all there are. */
  count: number;
  seed: number;
  /** Name of the tensor: with the seed it determines the random numbers. */
  name: string;
  /** Exact or randomised; by the size of the matrix where it is not said. */
  way?: 'exact' | 'randomised';
}

/** True when the values found are all that are not zero. */
export interface Spectrum {
  values: Float64Array;
  complete: boolean;
}

export function decomposesExactly({ rows, cols }: Pick<DeltaMatrix, 'rows' | 'cols'>): boolean {
  return Math.min(rows, cols) <= EXACT_SIDE && rows * cols <= EXACT_ELEMENTS;
}

/** The largest singular values, descending. @throws what reading and the engine throw */
export async function spectrumOf(delta: DeltaMatrix, options: DecomposeOptions): Promise<Spectrum> {
  if (goesExactly(delta, options)) {
    const all = await readDelta(delta);
    if (options.count > 1) return { values: singularValues(all), complete: true };
    return {
      values: Float64Array.of(largestSingularValue(all)),
      complete: Math.min(all.rows, all.cols) === 1,
    };
  }
  const { range, isWhole } = await rangeOf(delta, options);
  const values = singularValues(await transposedTimes(delta, range));
  return { values: isWhole ? values : values.slice(0, options.count), complete: isWhole };
}

/** The largest singular values with their vectors. @throws what reading and the engine throw */
export async function decompose(
  delta: DeltaMatrix,
  options: DecomposeOptions,
): Promise<Svd & { complete: boolean }> {
  if (goesExactly(delta, options)) return { ...smallSvd(await readDelta(delta)), complete: true };
  const { range, isWhole } = await rangeOf(delta, options);
  // Δ ≈ Q·(ΔᵀQ)ᵀ, and ΔᵀQ = V·S·Wᵀ gives Δ ≈ (Q·W)·S·Vᵀ
  const { s, u: v, v: w } = smallSvd(await transposedTimes(delta, range));
  const rank = isWhole ? s.length : Math.min(options.count, s.length);
  return {
    s: s.slice(0, rank),
    u: product(range, firstColumns(w, rank)),
    v: firstColumns(v, rank),
    complete: isWhole,
  };
}

function goesExactly(delta: DeltaMatrix, { way }: DecomposeOptions): boolean {
  return way === undefined ? decomposesExactly(delta) : way === 'exact';
}

/** max(10, r/8) columns more than wanted catch what the random start misses. */
function sketchWidth(delta: DeltaMatrix, count: number): number {
  const more = Math.max(10, Math.ceil(count / 8));
  return Math.min(count + more, delta.rows, delta.cols);
}

/** An orthonormal basis Q of (almost) the range of Δ, rounded to f32 as it enters the products. */
async function rangeOf(
  delta: DeltaMatrix,
  { count, seed, name }: DecomposeOptions,
): Promise<{ range: Columns; isWhole: boolean }> {
  const width = sketchWidth(delta, count);
  const isWhole = width === Math.min(delta.rows, delta.cols);
  let y = await times(delta, gaussian(delta.cols, width, maskKey(seed, 'svd', name)));
  for (let i = 0; i < (isWhole ? 0 : POWER_ITERATIONS); i++) {
    const z = await transposedTimes(delta, thinQr(y).q);
    y = await times(delta, thinQr(z).q);
  }
  const { q } = thinQr(y);
  for (let i = 0; i < q.data.length; i++) q.data[i] = Math.fround(q.data[i]!);
  return { range: q, isWhole };
}

/** Standard normal numbers by Box and Muller; element e takes half of the Philox words of counter ⌊e/2⌋. */
export function gaussian(rows: number, cols: number, [k0, k1]: [number, number]): Columns {
  const out = zeroColumns(rows, cols);
  const words = new Uint32Array(4);
  for (let e = 0; e < out.data.length; e += 2) {
    philox(e / 2, 0, k0, k1, words);
    const radius = Math.sqrt(-2 * Math.log((words[0]! + 1) / 2 ** 32));
    const angle = (2 * Math.PI * words[1]!) / 2 ** 32;
    out.data[e] = radius * Math.cos(angle);
    if (e + 1 < out.data.length) out.data[e + 1] = radius * Math.sin(angle);
  }
  return out;
}
