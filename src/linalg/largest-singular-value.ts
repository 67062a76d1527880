import { type Columns, column, dot, transposed } from './columns';
import { reflect } from './householder';

/**
 * The largest singular value in f64, as the root of the largest eigenvalue of the Gram matrix of the smaller side: that
 * one loses nothing by the squaring (the small ones would). Tridiagonal form by Householder reflections (Golub and Van
 * Loan, Matrix Computations, §8.3), then bisection by Sturm's count. n²m + 4n³/3 operations for n ≤ m.
 */
export function largestSingularValue(a: Columns): number {
  const gram = gramOf(a.rows < a.cols ? transposed(a) : a);
  return Math.sqrt(largestEigenvalue(tridiagonal(gram)));
}

/** aᵀ·a; four products at a time, each summed in order. */
function gramOf(a: Columns): Columns {
  const { rows, cols, data } = a;
  const out = new Float64Array(cols * cols);
  for (let i = 0; i < cols; i++) {
    const x = column(a, i);
    for (let j = 0; j <= i; j += 4) {
      // past the last column it is taken again
      const [p0, p1, p2, p3] = [0, 1, 2, 3].map((k) => Math.min(j + k, i) * rows) as [
        number,
        number,
        number,
        number,
      ];
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      for (let r = 0; r < rows; r++) {
        const v = x[r]!;
        s0 += v * data[p0 + r]!;
        s1 += v * data[p1 + r]!;
        s2 += v * data[p2 + r]!;
        s3 += v * data[p3 + r]!;
      }
      for (const [k, sum] of [s0, s1, s2, s3].entries()) {
        const at = Math.min(j + k, i);
        out[i * cols + at] = sum;
        out[at * cols + i] = sum;
      }
    }
  }
  return { rows: cols, cols, data: out };
}

interface Tridiagonal {
  diagonal: Float64Array;
  /** Element i stands beside diagonal i and i + 1. */
  beside: Float64Array;
}

/** The tridiagonal matrix that is orthogonally similar to a symmetric one. @param g is used up */
function tridiagonal(g: Columns): Tridiagonal {
  const n = g.rows;
  const diagonal = new Float64Array(n);
  const beside = new Float64Array(Math.max(0, n - 1));
  const w = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    diagonal[k] = g.data[k * n + k]!;
    if (k === n - 1) break;
    const v = column(g, k).subarray(k + 1);
    const { beta, pivot } = reflect(v);
    beside[k] = pivot;
    if (beta === 0) continue;
    // G ← (I − β·v·vᵀ)·G·(I − β·v·vᵀ) = G − v·wᵀ − w·vᵀ
    const rest = w.subarray(k + 1);
    const below = (j: number) => column(g, k + 1 + j).subarray(k + 1);
    for (let j = 0; j < rest.length; j++) rest[j] = beta * dot(below(j), v);
    const half = (beta * dot(rest, v)) / 2;
    for (let j = 0; j < rest.length; j++) rest[j]! -= half * v[j]!;
    for (let j = 0; j < rest.length; j++) {
      const y = below(j);
      const [vj, wj] = [v[j]!, rest[j]!];
      for (let i = 0; i < y.length; i++) y[i]! -= v[i]! * wj + rest[i]! * vj;
    }
  }
  return { diagonal, beside };
}

/** Halves an interval that holds it until nothing lies between its ends. */
function largestEigenvalue(matrix: Tridiagonal): number {
  const { diagonal, beside } = matrix;
  let low = 0; // a Gram matrix has none below
  let high = diagonal.reduce(
    (most, d, i) => Math.max(most, d + Math.abs(beside[i - 1] ?? 0) + Math.abs(beside[i] ?? 0)),
    0,
  );
  for (;;) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) return high;
    if (reaches(matrix, middle)) low = middle;
    else high = middle;
  }
}

/** Whether an eigenvalue is x or above: then a pivot of T − x·I is not negative (Sylvester's law of inertia). */
function reaches({ diagonal, beside }: Tridiagonal, x: number): boolean {
  let pivot = diagonal[0]! - x;
  for (let i = 1; pivot < 0 && i < diagonal.length; i++) {
    pivot = diagonal[i]! - x - beside[i - 1]! ** 2 / pivot;
  }
  return pivot >= 0;
}
