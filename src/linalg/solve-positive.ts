import { addTo, type Columns, column, zeroColumns } from './columns';

/**
 * b · a⁻¹ by Cholesky (Golub and Van Loan, Matrix Computations, §4.2) for a symmetric positive definite a [n, n] and b [m, n]:
 * with a = L·Lᵀ, X·L = b·L⁻ᵀ. n³/3 + 2mn² operations.
 *
 * @throws RangeError for a matrix that is not positive definite
 */
export function dividePositive(b: Columns, a: Columns): Columns {
  const n = a.cols;
  const l = lowerFactor(a);
  if (!l) throw new RangeError('the matrix is not positive definite');
  const x = zeroColumns(b.rows, n);
  x.data.set(b.data);
  for (let j = 0; j < n; j++) {
    for (let k = 0; k < j; k++) addTo(column(x, j), -l.data[k * n + j]!, column(x, k));
    divide(column(x, j), l.data[j * n + j]!);
  }
  for (let j = n - 1; j >= 0; j--) {
    for (let k = j + 1; k < n; k++) addTo(column(x, j), -l.data[j * n + k]!, column(x, k));
    divide(column(x, j), l.data[j * n + j]!);
  }
  return x;
}

/** L of a = L·Lᵀ, zeros above the diagonal; undefined where a is not positive definite. */
export function lowerFactor(a: Columns): Columns | undefined {
  const n = a.cols;
  const l = { ...a, data: a.data.slice() };
  for (let j = 0; j < n; j++) {
    const own = column(l, j);
    for (let k = 0; k < j; k++) addTo(own.subarray(j), -l.data[k * n + j]!, column(l, k).subarray(j));
    const pivot = Math.sqrt(own[j]!);
    if (!(pivot > 0)) return undefined;
    for (let i = j; i < n; i++) own[i]! /= pivot;
    own.fill(0, 0, j);
  }
  return l;
}

function divide(x: Float64Array, by: number): void {
  for (let i = 0; i < x.length; i++) x[i]! /= by;
}
