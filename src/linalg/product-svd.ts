import { type Columns, column, dot, firstColumns, product, transposed, zeroColumns } from './columns';
import { thinQr } from './householder';
import { type Svd, smallSvd } from './small-svd';
import { lowerFactor } from './solve-positive';

/** Least ratio of two squared pivots: what is lost to the squares is below 10⁻⁸ of the largest value, less than a float has. */
const LEAST_RATIO = 1e-8;

/**
 * The leading singular values of a · bᵀ for thin a [m, r] and b [n, r], by the Gram matrices of both: with aᵀa = L·Lᵀ the columns of
 * a·L⁻ᵀ are orthonormal, so that the values are those of Lᵀ·M, r × r. (m + n)·r² + 2(m + n)·r·wanted operations, a third of two QR.
 *
 * @returns undefined where the columns of one are so nearly dependent that squares lose too much
 */
export function productSvd(a: Columns, b: Columns, wanted: number): Svd | undefined {
  const [l, m] = [lowerFactor(gram(a)), lowerFactor(gram(b))];
  if (!l || !m || ratio(l) < LEAST_RATIO || ratio(m) < LEAST_RATIO) return undefined;
  const core = zeroColumns(l.cols, m.cols);
  for (let j = 0; j < m.cols; j++)
    for (let i = 0; i < l.cols; i++) core.data[j * l.cols + i] = dot(column(l, i), column(m, j));
  const { s, u, v } = smallSvd(core);
  const count = Math.min(wanted, s.length);
  return {
    s: s.slice(0, count),
    u: product(a, withoutFactor(l, firstColumns(u, count))),
    v: product(b, withoutFactor(m, firstColumns(v, count))),
  };
}

/** The singular values of a · bᵀ for thin a [m, r] and b [n, r], by QR of both: exact, however dependent their columns. */
export function thinProductSvd(a: Columns, b: Columns): Svd {
  if (a.cols > Math.min(a.rows, b.rows)) return smallSvd(product(a, transposed(b)));
  const [one, two] = [thinQr(a), thinQr(b)];
  const { s, u, v } = smallSvd(product(one.r, transposed(two.r)));
  return { s, u: product(one.q, u), v: product(two.q, v) };
}

/** aᵀ · a; four columns at a time, since a sum that is made in order waits for each of its terms. */
function gram(a: Columns): Columns {
  const n = a.cols;
  const out = zeroColumns(n, n);
  const set = (i: number, j: number, value: number) => {
    out.data[j * n + i] = value;
    out.data[i * n + j] = value;
  };
  for (let j = 0; j < n; j++) {
    const x = column(a, j);
    let i = 0;
    for (; i + 4 <= j + 1; i += 4) {
      const [y0, y1, y2, y3] = [column(a, i), column(a, i + 1), column(a, i + 2), column(a, i + 3)];
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      for (let k = 0; k < x.length; k++) {
        const value = x[k]!;
        s0 += value * y0[k]!;
        s1 += value * y1[k]!;
        s2 += value * y2[k]!;
        s3 += value * y3[k]!;
      }
      set(i, j, s0);
      set(i + 1, j, s1);
      set(i + 2, j, s2);
      set(i + 3, j, s3);
    }
    for (; i <= j; i++) set(i, j, dot(column(a, i), x));
  }
  return out;
}

/** The square of the ratio of the least and the largest pivot. */
function ratio({ cols, data }: Columns): number {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (let j = 0; j < cols; j++) {
    const pivot = data[j * cols + j]!;
    least = Math.min(least, pivot);
    most = Math.max(most, pivot);
  }
  return (least / most) ** 2;
}

/** L⁻ᵀ · x. */
function withoutFactor(l: Columns, x: Columns): Columns {
  const out = { ...x, data: x.data.slice() };
  const n = l.cols;
  for (let c = 0; c < x.cols; c++) {
    const own = column(out, c);
    for (let j = n - 1; j >= 0; j--) {
      const below = dot(column(l, j).subarray(j + 1), own.subarray(j + 1));
      own[j] = (own[j]! - below) / l.data[j * n + j]!;
    }
  }
  return out;
}
