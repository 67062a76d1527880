/**
 * The nearest rows of a dictionary, each by the inverse of its distance (mergekit's tokensurgeon, `common_interpolation`,
 * Euclidean and proportional to the inverse distance).
 */
import type { Rows } from './products';
import { type Combination, dotOf, type Making, normOf, residual, rowOf } from './pursuit';

/** Distances below this count as it, so that a row that is there is nearly all of the sum. */
const NEAR = 1e-6;
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
  const weights = closest.map(({ distance }) => 1 / Math.max(distance, NEAR));
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
