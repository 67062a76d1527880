// Δ = scale · L·R on a run of flat elements, stored or added: shaders/low-rank.wgsl. Every element sums in the order of k;
// four rows share what is loaded of R.
import { flush, flushOne, rounded, roundedOne } from './lib/lanes';

export { hasSmall } from './lib/lanes';

@inline
function put(out: usize, sum: v128, scale: f32, add: bool): void {
  const scaled = flush(f32x4.mul(sum, f32x4.splat(scale)));
  v128.store(out, add ? flush(f32x4.add(v128.load(out), scaled)) : scaled);
}

// Whether the factors have small values (lanes.ts), as a type, so that there are loops without a question: i32 yes, u32 no.

/** One element. */
function single<S>(left: usize, right: usize, pitch: usize, rank: i32, to: usize, scale: f32, add: bool): void {
  let sum: f32 = 0;
  for (let k = 0; k < rank; k++) {
    sum = roundedOne(sum + roundedOne(load<f32>(left + (<usize>k << 2)) * load<f32>(right), isSigned<S>()), isSigned<S>());
    right += pitch;
  }
  const scaled = flushOne(sum * scale);
  store<f32>(to, add ? flushOne(load<f32>(to) + scaled) : scaled);
}

/** Part of one row: n columns from `right` on. */
function rowPart<S>(
  left: usize,
  right: usize,
  pitch: usize,
  rank: i32,
  out: usize,
  n: i32,
  scale: f32,
  add: bool,
): void {
  let c = 0;
  for (; c + 16 <= n; c += 16) {
    let s0 = f32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let r = right + (<usize>c << 2);
    for (let k = 0; k < rank; k++) {
      const l = v128.load32_splat(left + (<usize>k << 2));
      s0 = rounded(f32x4.add(s0, rounded(f32x4.mul(l, v128.load(r)), isSigned<S>())), isSigned<S>());
      s1 = rounded(f32x4.add(s1, rounded(f32x4.mul(l, v128.load(r, 16)), isSigned<S>())), isSigned<S>());
      s2 = rounded(f32x4.add(s2, rounded(f32x4.mul(l, v128.load(r, 32)), isSigned<S>())), isSigned<S>());
      s3 = rounded(f32x4.add(s3, rounded(f32x4.mul(l, v128.load(r, 48)), isSigned<S>())), isSigned<S>());
      r += pitch;
    }
    const to = out + (<usize>c << 2);
    put(to, s0, scale, add);
    put(to + 16, s1, scale, add);
    put(to + 32, s2, scale, add);
    put(to + 48, s3, scale, add);
  }
  for (; c < n; c++) {
    const at = <usize>c << 2;
    single<S>(left, right + at, pitch, rank, out + at, scale, add);
  }
}

/** Rows of R whose eight columns fit the scratch. */
const PANEL_RANK: i32 = 1024;

/** Rows for which it pays to lay out R anew. */
const MANY: i32 = 8;

/** Four rows by eight columns of R, [rank][8]. */
@inline
function fourRows(left: usize, deep: usize, r: usize, to: usize, pitch: usize, scale: f32, add: bool): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  let e = a;
  let f = a;
  let g = a;
  let h = a;
  let l1 = left + deep;
  let l2 = l1 + deep;
  let l3 = l2 + deep;
  const end = l1;
  for (let l = left; l < end; l += 4) {
    const low = v128.load(r);
    const high = v128.load(r, 16);
    const p = v128.load32_splat(l);
    a = f32x4.add(a, f32x4.mul(p, low));
    b = f32x4.add(b, f32x4.mul(p, high));
    const q = v128.load32_splat(l1);
    c = f32x4.add(c, f32x4.mul(q, low));
    d = f32x4.add(d, f32x4.mul(q, high));
    const s = v128.load32_splat(l2);
    e = f32x4.add(e, f32x4.mul(s, low));
    f = f32x4.add(f, f32x4.mul(s, high));
    const t = v128.load32_splat(l3);
    g = f32x4.add(g, f32x4.mul(t, low));
    h = f32x4.add(h, f32x4.mul(t, high));
    l1 += 4;
    l2 += 4;
    l3 += 4;
    r += 32;
  }
  put(to, a, scale, add);
  put(to + 16, b, scale, add);
  to += pitch;
  put(to, c, scale, add);
  put(to + 16, d, scale, add);
  to += pitch;
  put(to, e, scale, add);
  put(to + 16, f, scale, add);
  to += pitch;
  put(to, g, scale, add);
  put(to + 16, h, scale, add);
}

/**
 * Whole rows, a multiple of four, of a matrix without small values. Eight columns of R are laid close together first:
 * rows of 2^n floats would all want the same few lines of the first cache.
 */
function manyRows(
  left: usize,
  right: usize,
  cols: i32,
  rank: i32,
  out: usize,
  rows: i32,
  scale: f32,
  add: bool,
  scratch: usize,
): void {
  const pitch = <usize>cols << 2;
  const deep = <usize>rank << 2;
  let c = 0;
  for (; c + 8 <= cols; c += 8) {
    let r = right + (<usize>c << 2);
    for (let k = scratch; k < scratch + (deep << 3); k += 32) {
      v128.store(k, v128.load(r));
      v128.store(k, v128.load(r, 16), 16);
      r += pitch;
    }
    let l = left;
    let to = out + (<usize>c << 2);
    for (let row = 0; row < rows; row += 4) {
      fourRows(l, deep, scratch, to, pitch, scale, add);
      l += 4 * deep;
      to += 4 * pitch;
    }
  }
  for (; c < cols; c++) {
    const at = <usize>c << 2;
    for (let row: usize = 0; row < <usize>rows; row++) {
      single<u32>(left + row * deep, right + at, pitch, rank, out + row * pitch + at, scale, add);
    }
  }
}

/**
 * Elements first … first + n − 1 of a matrix with `cols` columns. `left` [rows, rank] and `right` [rank, cols] are whole;
 * `small`: one of their values is (lanes.ts). `scratch`: 32 KiB.
 */
export function lowRank(
  left: usize,
  right: usize,
  cols: i32,
  rank: i32,
  out: usize,
  first: f64,
  n: i32,
  scale: f32,
  add: bool,
  small: bool,
  scratch: usize,
): void {
  const pitch = <usize>cols << 2;
  const deep = <usize>rank << 2;
  const row = <i64>first / cols;
  let col = <i32>(<i64>first - row * cols);
  let l = left + <usize>row * deep;
  for (let e = 0; e < n; ) {
    const to = out + (<usize>e << 2);
    const fours = col == 0 && rank <= PANEL_RANK && !small ? (n - e) / cols & ~3 : 0;
    if (fours >= MANY) {
      manyRows(l, right, cols, rank, to, fours, scale, add, scratch);
      e += fours * cols;
      l += <usize>fours * deep;
    } else {
      const part = min(cols - col, n - e);
      const r = right + (<usize>col << 2);
      if (small) rowPart<i32>(l, r, pitch, rank, to, part, scale, add);
      else rowPart<u32>(l, r, pitch, rank, to, part, scale, add);
      e += part;
      col = 0;
      l += deep;
    }
  }
}
