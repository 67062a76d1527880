/**
 * Orthogonal matching pursuit (Pati, Rezaiifar and Krishnaprasad 1993), as mergekit's tokensurgeon chooses: a row is made of up to
 * k rows of a dictionary, each time of the one whose inner product with what is left is the largest by amount; of several as large,
 * of the first. The factors are those of least squares, by a Cholesky factor of the chosen rows' products that grows by a row.
 */
import { part, type Rows } from './products';

/** A row as a sum of rows of a dictionary. */
export interface Combination {
  rows: number[];
  weights: number[];
  /** Norm of what is left, as a share of the row's; 0 for a row of zeros. */
  left: number;
}

/** A row that is being made. */
export interface Making {
  /** Its products with the dictionary are asked for next; undefined where it is made. */
  readonly asks: Float32Array | undefined;
  /** @param products of `asks` with every row of the dictionary, in f32 */
  take(products: Float32Array): void;
  readonly made: Combination;
}

/** What is left below this share of a row is rounding. */
const EXHAUSTED = 1e-7;
/** Products this near the largest by f32 are compared in f64. */
const NEAR = 1e-4;
/** A row whose square outside of those chosen is a smaller share of its own is made of them. */
const DEPENDENT = 1e-9;

/** @param k most rows that it is made of */
export function pursue(x: Float32Array, dictionary: Rows, k: number): Making {
  const norm = normOf(x);
  const most = Math.min(k, dictionary.count);
  const chosen: number[] = [];
  const dependent = new Set<number>();
  const factor = new Float64Array(most * most);
  const wanted: number[] = [];
  let weights = new Float64Array(0);
  let rest = new Float64Array(x);
  let isMade = norm === 0 || most === 0;
  return {
    get asks() {
      return isMade ? undefined : new Float32Array(rest);
    },
    take(products) {
      const known = new Set([...chosen, ...dependent]);
      for (;;) {
        const next = largest(products, rest, dictionary, known);
        if (next === undefined) {
          isMade = true;
          return;
        }
        const own = rowOf(dictionary, next);
        const squares = productsOf(dictionary, [...chosen, next], own);
        if (grow(factor, most, chosen.length, squares)) {
          chosen.push(next);
          wanted.push(dotOf(own, x));
          break;
        }
        dependent.add(next);
        known.add(next);
      }
      weights = solve(factor, most, wanted);
      rest = residual(x, dictionary, chosen, weights);
      isMade = chosen.length === most || !(normOf(rest) > EXHAUSTED * norm);
    },
    get made() {
      return { rows: chosen, weights: [...weights], left: norm === 0 ? 0 : normOf(rest) / norm };
    },
  };
}

/** The row of the largest product by amount, the first of several; undefined where all are zero. */
function largest(
  products: Float32Array,
  rest: Float64Array,
  dictionary: Rows,
  known: ReadonlySet<number>,
): number | undefined {
  let most = 0;
  for (let j = 0; j < products.length; j++) {
    const size = Math.abs(products[j]!);
    if (size > most && !known.has(j)) most = size;
  }
  const near: { row: number; size: number }[] = [];
  const bound = most * (1 - NEAR);
  for (let j = 0; most > 0 && j < products.length; j++) {
    if (Math.abs(products[j]!) < bound || known.has(j)) continue;
    near.push({ row: j, size: Math.abs(dotOf(rowOf(dictionary, j), rest)) });
  }
  return near.reduce<(typeof near)[number] | undefined>(
    (best, one) => (best && best.size >= one.size ? best : one),
    undefined,
  )?.row;
}

/** A row more of L, L·Lᵀ = the products of the chosen rows; false where the new one is made of the others. */
function grow(factor: Float64Array, stride: number, t: number, squares: Float64Array): boolean {
  const own = squares[t]!;
  let rest = own;
  for (let i = 0; i < t; i++) {
    let sum = squares[i]!;
    for (let j = 0; j < i; j++) sum -= factor[i * stride + j]! * factor[t * stride + j]!;
    const value = sum / factor[i * stride + i]!;
    factor[t * stride + i] = value;
    rest -= value * value;
  }
  if (!(rest > DEPENDENT * own)) return false;
  factor[t * stride + t] = Math.sqrt(rest);
  return true;
}

/** γ of L·Lᵀ·γ = b. */
function solve(factor: Float64Array, stride: number, b: readonly number[]): Float64Array<ArrayBuffer> {
  const x = Float64Array.from(b);
  for (let i = 0; i < x.length; i++) {
    for (let j = 0; j < i; j++) x[i]! -= factor[i * stride + j]! * x[j]!;
    x[i]! /= factor[i * stride + i]!;
  }
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = i + 1; j < x.length; j++) x[i]! -= factor[j * stride + i]! * x[j]!;
    x[i]! /= factor[i * stride + i]!;
  }
  return x;
}

export const rowOf = (rows: Rows, row: number) => part(rows, row, 1).values;

/** Four rows at a time, those that are not there as zeros: what is read with them is read once. */
function inFours(rows: readonly number[]): [number, number, number, number][] {
  return Array.from({ length: Math.ceil(rows.length / 4) }, (_, i) => [
    rows[4 * i]!,
    rows[4 * i + 1] ?? rows[0]!,
    rows[4 * i + 2] ?? rows[0]!,
    rows[4 * i + 3] ?? rows[0]!,
  ]);
}

/** Products of some rows with x, in f64. */
function productsOf({ values, width }: Rows, rows: readonly number[], x: Float32Array): Float64Array {
  const out = new Float64Array(4 * Math.ceil(rows.length / 4));
  for (const [i, four] of inFours(rows).entries()) {
    const [a, b, c, d] = four.map((row) => row * width) as [number, number, number, number];
    let [sa, sb, sc, sd] = [0, 0, 0, 0];
    for (let j = 0; j < width; j++) {
      const value = x[j]!;
      sa += values[a + j]! * value;
      sb += values[b + j]! * value;
      sc += values[c + j]! * value;
      sd += values[d + j]! * value;
    }
    out.set([sa, sb, sc, sd], 4 * i);
  }
  return out;
}

/** What a sum of rows leaves of x. */
export function residual(
  x: Float32Array,
  { values, width }: Rows,
  rows: readonly number[],
  weights: ArrayLike<number>,
): Float64Array<ArrayBuffer> {
  const rest = new Float64Array(x);
  for (const [i, four] of inFours(rows).entries()) {
    const [a, b, c, d] = four.map((row) => row * width) as [number, number, number, number];
    const [wa, wb, wc, wd] = [0, 1, 2, 3].map((at) => weights[4 * i + at] ?? 0) as typeof four;
    for (let j = 0; j < width; j++) {
      rest[j] =
        rest[j]! - (wa * values[a + j]! + wb * values[b + j]! + wc * values[c + j]! + wd * values[d + j]!);
    }
  }
  return rest;
}

function dotOf(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

export function normOf(row: ArrayLike<number>): number {
  return Math.sqrt(dotOf(row, row));
}

// The nearest rows of a dictionary, each by the inverse of its distance (mergekit's tokensurgeon, `common_interpolation`, Euclidean and proportional to the inverse distance).

/** Distances below this count as it, so that a row that is there is nearly all of the sum. */
const LEAST_DISTANCE = 1e-6;
/** Rows beside the k nearest by f32 products that are looked at in f64. */
const SPARE = 16;

/** Of two rows as near the first counts. */
export function near(x: Float32Array, dictionary: Rows, k: number): Making {
  let made: Combination | undefined;
  return {
    get asks() {
      return made ? undefined : x;
    },
    take(products) {
      made = nearest(x, products, dictionary, k);
    },
    get made() {
      return made!;
    },
  };
}

/** @param products of x with every row, in f32 */
function nearest(x: Float32Array, products: Float32Array, dictionary: Rows, k: number): Combination {
  const squares = squaresOf(dictionary);
  const most = Math.min(products.length, k + SPARE);
  const rows: number[] = [];
  const far: number[] = [];
  for (let j = 0; j < products.length; j++) {
    const distance = squares[j]! - 2 * products[j]!;
    if (rows.length === most && !(distance < far[most - 1]!)) continue;
    let at = Math.min(rows.length, most - 1);
    for (; at > 0 && far[at - 1]! > distance; at--) {
      far[at] = far[at - 1]!;
      rows[at] = rows[at - 1]!;
    }
    far[at] = distance;
    rows[at] = j;
  }
  const closest = rows
    .map((row) => ({ row, distance: distanceTo(x, dictionary, row) }))
    .sort((a, b) => a.distance - b.distance || a.row - b.row)
    .slice(0, k);
  const weights = closest.map(({ distance }) => 1 / Math.max(distance, LEAST_DISTANCE));
  const sum = weights.reduce((a, b) => a + b, 0);
  const chosen = { rows: closest.map(({ row }) => row), weights: weights.map((weight) => weight / sum) };
  const rest = residual(x, dictionary, chosen.rows, chosen.weights);
  return { ...chosen, left: normOf(rest) / (normOf(x) || 1) };
}

const known = new WeakMap<Rows, Float64Array>();

function squaresOf(dictionary: Rows): Float64Array {
  const found =
    known.get(dictionary) ??
    Float64Array.from({ length: dictionary.count }, (_, row) =>
      dotOf(rowOf(dictionary, row), rowOf(dictionary, row)),
    );
  known.set(dictionary, found);
  return found;
}

function distanceTo(x: Float32Array, dictionary: Rows, row: number): number {
  const other = rowOf(dictionary, row);
  let sum = 0;
  for (let c = 0; c < x.length; c++) sum += (x[c]! - other[c]!) ** 2;
  return Math.sqrt(sum);
}
