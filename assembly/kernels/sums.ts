import { flush, flushOne, hasSmall, rounded, roundedOne } from './lib/lanes';
import { fourByEight, high0, high1, high2, high3, low0, low1, low2, low3 } from './lib/panels';

export { hasSmall } from './lib/lanes';
export { storedSum } from './lib/stored-sum';

// Σ c·v: shaders/sums/weighted-sum.wgsl. Where no vector and no coefficient is small (lanes.ts) nothing on the way is subnormal.

/** c·(v − a), with v − a = 0 where both have the same bits, or c·v, as four lanes. */
@inline
function scaled(v: v128, anchor: v128, c: v128, affine: bool, small: bool): v128 {
  const x = affine ? v128.andnot(rounded(f32x4.sub(v, anchor), small), i32x4.eq(v, anchor)) : v;
  return rounded(f32x4.mul(x, c), small);
}

/** b·a, and 0 for b = 0 whatever a is: `some` is then 0, else all bits. */
@inline
function started(a: v128, b: v128, some: v128, small: bool): v128 {
  return v128.and(rounded(f32x4.mul(a, b), small), some);
}

/** start + δ; a δ of zero is added as −0, which leaves every start its bits. */
@inline
function changed(start: v128, delta: v128, small: bool): v128 {
  const change = v128.or(delta, v128.and(f32x4.eq(delta, f32x4.splat(0)), i32x4.splat(0x80000000)));
  return rounded(f32x4.add(start, change), small);
}

// the last vectors of the loops may reach beyond n: a buffer has room for whole blocks

@inline
function sumAll(
  values: usize,
  stride: usize,
  count: i32,
  anchor: i32,
  table: usize,
  affine: bool,
  out: usize,
  n: i32,
  small: bool,
): void {
  const a = values + <usize>anchor * stride;
  const own = v128.load32_splat(table);
  const zero = f32x4.splat(0);
  const some = f32x4.ne(own, zero);
  for (let e = 0; e < n; e += 4) {
    const at = <usize>e << 2;
    const base = v128.load(a + at);
    let delta = zero;
    for (let i = 0; i < count; i++) {
      const c = table + (<usize>(i + 2) << 2);
      if (i == anchor || load<f32>(c) == 0) continue;
      const term = scaled(v128.load(values + <usize>i * stride + at), base, v128.load32_splat(c), affine, small);
      delta = rounded(f32x4.add(delta, term), small);
    }
    v128.store(out + at, changed(started(base, own, some, small), delta, small));
  }
}

/** Of two vectors. */
@inline
function sumTwo(a: usize, v: usize, own: v128, c: v128, affine: bool, out: usize, n: i32): void {
  const some = f32x4.ne(own, f32x4.splat(0));
  for (let e: usize = 0; e < <usize>n << 2; e += 16) {
    const base = v128.load(a + e);
    const delta = scaled(v128.load(v + e), base, c, affine, false);
    v128.store(out + e, changed(started(base, own, some, false), delta, false));
  }
}

/**
 * b·a + Σ cᵢ·(vᵢ − k·a) over `count` vectors `stride` bytes apart, the one numbered `anchor` being a.
 * `table`: b, k, c₀, c₁, …; `extreme`: one of them is small.
 */
export function weightedSum(
  values: usize,
  stride: usize,
  count: i32,
  anchor: i32,
  table: usize,
  extreme: bool,
  out: usize,
  n: i32,
): void {
  const affine = load<f32>(table, 4) == 1;
  let small = extreme;
  for (let i = 0; i < count && !small; i++) small = hasSmall(values + <usize>i * stride, n);
  const other = 1 - anchor;
  if (small) sumAll(values, stride, count, anchor, table, affine, out, n, true);
  else if (count == 2 && load<f32>(table + (<usize>(other + 2) << 2)) != 0) {
    const a = values + <usize>anchor * stride;
    const v = values + <usize>other * stride;
    const own = v128.load32_splat(table);
    const c = v128.load32_splat(table + (<usize>(other + 2) << 2));
    if (affine) sumTwo(a, v, own, c, true, out, n);
    else sumTwo(a, v, own, c, false, out, n);
  } else sumAll(values, stride, count, anchor, table, affine, out, n, false);
}

// Δ = scale · L·R on a run of flat elements, stored or added: shaders/sums/low-rank.wgsl. Every element sums in the order of k;
// four rows share what is loaded of R.


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

@inline
function put8(to: usize, low: v128, high: v128, scale: f32, add: bool): void {
  put(to, low, scale, add);
  put(to + 16, high, scale, add);
}

/** Four rows by eight columns of R, [rank][8]. */
@inline
function fourRows(left: usize, rank: i32, r: usize, to: usize, pitch: usize, scale: f32, add: bool): void {
  const deep = <usize>rank << 2;
  fourByEight(left, left + deep, left + 2 * deep, left + 3 * deep, 4, r, 32, rank);
  put8(to, low0, high0, scale, add);
  put8(to + pitch, low1, high1, scale, add);
  put8(to + 2 * pitch, low2, high2, scale, add);
  put8(to + 3 * pitch, low3, high3, scale, add);
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
      fourRows(l, rank, scratch, to, pitch, scale, add);
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

// τ = W − W₀: shaders/sums/subtract.wgsl.

/** τ ← τ − W₀, and 0 where both have the same bits: an infinity that all have is no change. */
export function subtract(values: usize, base: usize, n: i32): void {
  let e: usize = 0;
  const end = <usize>n << 2;
  for (; e + 16 <= end; e += 16) {
    const own = v128.load(values + e);
    const from = v128.load(base + e);
    v128.store(values + e, v128.andnot(flush(f32x4.sub(own, from)), i32x4.eq(own, from)));
  }
  for (; e < end; e += 4) {
    const same = load<u32>(values + e) == load<u32>(base + e);
    store<f32>(values + e, same ? 0 : flushOne(load<f32>(values + e) - load<f32>(base + e)));
  }
}

// y += scale · x: shaders/sums/add-scaled.wgsl.

export function addScaled(x: usize, y: usize, n: i32, scale: f32): void {
  const end = <usize>n << 2;
  const by = f32x4.splat(scale);
  let e: usize = 0;
  for (; e + 16 <= end; e += 16) {
    v128.store(y + e, f32x4.add(v128.load(y + e), f32x4.mul(by, v128.load(x + e))));
  }
  for (; e < end; e += 4) store<f32>(y + e, load<f32>(y + e) + scale * load<f32>(x + e));
}
