import { addTo, type Columns, column, dot, zeroColumns } from './columns';

/**
 * Thin QR by Householder reflections (Golub and Van Loan, Matrix Computations, §5.2): a [m, n] with m ≥ n becomes
 * Q [m, n] with orthonormal columns, whatever the rank of a, and R [n, n] upper triangular. 4mn² operations with Q.
 *
 * @param a is used up
 */
export function thinQr(a: Columns): { q: Columns; r: Columns } {
  const { rows, cols } = a;
  const r = zeroColumns(cols, cols);
  const betas = new Float64Array(cols);
  for (let j = 0; j < cols; j++) {
    const x = column(a, j);
    r.data.set(x.subarray(0, j), j * cols);
    const tail = x.subarray(j);
    const { beta, pivot } = reflect(tail);
    betas[j] = beta;
    r.data[j * cols + j] = pivot;
    for (let k = j + 1; k < cols; k++) applyReflection(tail, beta, column(a, k).subarray(j));
  }
  const q = zeroColumns(rows, cols);
  for (let j = 0; j < cols; j++) q.data[j * rows + j] = 1;
  for (let j = cols - 1; j >= 0; j--) {
    const v = column(a, j).subarray(j);
    for (let k = j; k < cols; k++) applyReflection(v, betas[j]!, column(q, k).subarray(j));
  }
  return { q, r };
}

/** Turns x into the vector v of the reflection I − β·v·vᵀ that maps x to (pivot, 0, …). β = 0 leaves all as it is. */
export function reflect(x: Float64Array): { beta: number; pivot: number } {
  const head = x[0]!;
  const norm = Math.sqrt(dot(x, x));
  if (norm === 0) return { beta: 0, pivot: 0 };
  const pivot = head > 0 ? -norm : norm; // no cancellation in head − pivot
  x[0] = head - pivot;
  return { beta: 2 / dot(x, x), pivot };
}

/** y ← (I − β·v·vᵀ)·y */
function applyReflection(v: Float64Array, beta: number, y: Float64Array): void {
  addTo(y, -beta * dot(v, y), v);
}
