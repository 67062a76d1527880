import { type Columns, column, dot, zeroColumns } from './columns';

/** Most sweeps; matrices of a few hundred columns need six to ten. */
const MAX_SWEEPS = 60;
/** Columns count as orthogonal below this cosine. */
const ORTHOGONAL = 1e-15;

/**
 * One-sided Jacobi (Hestenes 1958; Demmel and Veselić 1992 for its accuracy): rotates the columns of w [m, n] in place
 * until they are orthogonal, w ← w·J. Then the norms of the columns are the singular values, the columns over their norms the left
 * vectors and the columns of J the right ones, all sorted by descending value.
 *
 * @param w is replaced by w·J, sorted
 * @param rotations whether J [n, n] is wanted
 */
export function jacobiSvd(w: Columns, rotations: boolean): { values: Float64Array; j?: Columns } {
  const { cols } = w;
  const j = rotations ? identity(cols) : undefined;
  const norms = squaredNorms(w);
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep++) {
    let rotated = false;
    for (let p = 0; p < cols - 1; p++) {
      for (let q = p + 1; q < cols; q++) {
        if (!rotatePair(w, norms, p, q, j)) continue;
        rotated = true;
      }
    }
    if (!rotated) break;
    norms.set(squaredNorms(w)); // updates of a whole sweep drift
  }
  return sort(w, j);
}

/** Makes columns p and q orthogonal, the larger first; false when they are already. */
function rotatePair(w: Columns, norms: Float64Array, p: number, q: number, j: Columns | undefined): boolean {
  const x = column(w, p);
  const y = column(w, q);
  const a = norms[p]!;
  const b = norms[q]!;
  const c = dot(x, y);
  if (Math.abs(c) <= ORTHOGONAL * Math.sqrt(a * b) || c === 0) return false;
  const zeta = (b - a) / (2 * c);
  const t = (zeta >= 0 ? 1 : -1) / (Math.abs(zeta) + Math.hypot(1, zeta));
  const cosine = 1 / Math.hypot(1, t);
  const sine = cosine * t;
  rotate(x, y, cosine, sine);
  if (j) rotate(column(j, p), column(j, q), cosine, sine);
  norms[p] = Math.max(0, a - t * c);
  norms[q] = Math.max(0, b + t * c);
  return true;
}

function rotate(x: Float64Array, y: Float64Array, cosine: number, sine: number): void {
  for (let i = 0; i < x.length; i++) {
    const u = x[i]!;
    const v = y[i]!;
    x[i] = cosine * u - sine * v;
    y[i] = sine * u + cosine * v;
  }
}

function squaredNorms(w: Columns): Float64Array {
  return Float64Array.from({ length: w.cols }, (_, j) => dot(column(w, j), column(w, j)));
}

/** Brings columns into descending order of their norms. */
function sort(w: Columns, j: Columns | undefined): { values: Float64Array; j?: Columns } {
  const found = squaredNorms(w).map(Math.sqrt);
  const order = [...found.keys()].sort((a, b) => found[b]! - found[a]! || a - b);
  const pick = (from: Columns): Columns => {
    const to = zeroColumns(from.rows, from.cols);
    for (const [at, index] of order.entries()) to.data.set(column(from, index), at * from.rows);
    return to;
  };
  w.data.set(pick(w).data);
  return { values: Float64Array.from(order, (index) => found[index]!), ...(j ? { j: pick(j) } : {}) };
}

function identity(n: number): Columns {
  const out = zeroColumns(n, n);
  for (let i = 0; i < n; i++) out.data[i * n + i] = 1;
  return out;
}
