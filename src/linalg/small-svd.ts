import { type Columns, column, firstColumns, product, transposed, zeroColumns } from './columns';
import { thinQr } from './householder';
import { jacobiSvd } from './jacobi';

/** Σᵢ sᵢ·uᵢ·vᵢᵀ with descending s > 0; u [rows, r] and v [cols, r] have orthonormal columns. */
export interface Svd {
  s: Float64Array;
  u: Columns;
  v: Columns;
}

/** Values this much below the largest are indistinguishable from rounding in f64, and have no direction. */
const NOTHING = 1e-15;

/**
 * The whole singular value decomposition of a matrix in f64: QR of the tall form, then one-sided Jacobi on Rᵀ. Values
 * that are zero are left out.
 *
 * @param a is used up
 */
export function smallSvd(a: Columns): Svd {
  if (a.rows < a.cols) {
    const { s, u, v } = smallSvd(transposed(a));
    return { s, u: v, v: u };
  }
  const { q, r } = thinQr(a);
  // R = U'·S·V'ᵀ, so Rᵀ = V'·S·U'ᵀ: the columns of Rᵀ·J are V'·S, and J is U'
  const w = transposed(r);
  const { values, j } = jacobiSvd(w, true);
  const rank = countAbove(values);
  const v = zeroColumns(w.rows, rank);
  for (let i = 0; i < rank; i++)
    v.data.set(
      column(w, i).map((x) => x / values[i]!),
      i * w.rows,
    );
  return { s: values.slice(0, rank), u: product(q, firstColumns(j!, rank)), v };
}

/** The singular values alone, descending, zeros left out. @param a is used up */
export function singularValues(a: Columns): Float64Array {
  const { r } = thinQr(a.rows < a.cols ? transposed(a) : a);
  const { values } = jacobiSvd(transposed(r), false);
  return values.slice(0, countAbove(values));
}

function countAbove(values: Float64Array): number {
  return values.filter((s) => s > NOTHING * values[0]!).length;
}
