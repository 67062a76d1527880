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
// four rows share what is loaded of R. Rows one behind the other go by its panels of eight columns, from front to back.

@inline
function put(out: usize, sum: v128, scale: f32, add: bool): void {
  const scaled = flush(f32x4.mul(sum, f32x4.splat(scale)));
  v128.store(out, add ? flush(f32x4.add(v128.load(out), scaled)) : scaled);
}

@inline
function put8(to: usize, low: v128, high: v128, scale: f32, add: bool): void {
  put(to, low, scale, add);
  put(to + 16, high, scale, add);
}

/** Up to four rows by a panel. */
@inline
function fourRows(left: usize, rank: i32, panel: usize, to: usize, pitch: usize, count: i32, scale: f32, add: bool): void {
  const deep = <usize>rank << 2;
  const third = left + (count > 2 ? 2 * deep : 0);
  const fourth = left + (count > 3 ? 3 * deep : 0);
  fourByEight(left, left + deep, third, fourth, 4, panel, 32, rank);
  put8(to, low0, high0, scale, add);
  put8(to + pitch, low1, high1, scale, add);
  if (count > 2) put8(to + 2 * pitch, low2, high2, scale, add);
  if (count > 3) put8(to + 3 * pitch, low3, high3, scale, add);
}

/** One row by a panel; `small`: a value of the factors is (lanes.ts). */
function oneRow(left: usize, rank: i32, panel: usize, to: usize, scale: f32, add: bool, small: bool): void {
  let low = f32x4.splat(0);
  let high = low;
  for (const end = left + (<usize>rank << 2); left < end; left += 4) {
    const l = v128.load32_splat(left);
    low = f32x4.add(low, rounded(f32x4.mul(l, v128.load(panel)), small));
    high = f32x4.add(high, rounded(f32x4.mul(l, v128.load(panel, 16)), small));
    if (small) {
      low = flush(low);
      high = flush(high);
    }
    panel += 32;
  }
  put8(to, low, high, scale, add);
}

/**
 * Elements first … first + n − 1 of a matrix with `cols` columns. `left` [rows, rank] and the panels at `right` are whole;
 * `small`: one of their values is. `scratch`: 32 bytes.
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
  const firstRow = <i64>first / cols;
  // columns before `from` of the first row and from `until` on of the last are not meant
  const from = <i32>(<i64>first - firstRow * cols);
  const rows = (from + n + cols - 1) / cols;
  const until = from + n - (rows - 1) * cols;
  left += <usize>firstRow * deep;
  out -= <usize>from << 2;
  for (let c = 0; c < cols; c += 8) {
    const begin = c < from ? 1 : 0;
    const end = c + 8 > until ? rows - 1 : rows;
    let l = left + begin * deep;
    let to = out + (<usize>c << 2) + begin * pitch;
    let row = c + 8 > cols ? end : begin;
    for (; row + 4 <= end && !small; row += 4) {
      fourRows(l, rank, right, to, pitch, 4, scale, add);
      l += 4 * deep;
      to += 4 * pitch;
    }
    if (row + 2 <= end && !small) {
      fourRows(l, rank, right, to, pitch, end - row, scale, add);
      row = end;
    }
    for (; row < end; row++) {
      oneRow(l, rank, right, to, scale, add, small);
      l += deep;
      to += pitch;
    }
    if (c + 8 > cols || (c < from && from < c + 8) || (c < until && until < c + 8)) {
      for (row = 0; row < rows; row++) {
        const least = row == 0 ? max(c, from) : c;
        const most = min(min(c + 8, cols), row == rows - 1 ? until : cols);
        if (least >= most || most - least == 8) continue;
        // what is beside them goes along, and stays as it is
        to = out + <usize>row * pitch;
        const at = scratch + (<usize>(least - c) << 2);
        const bytes = <usize>(most - least) << 2;
        memory.copy(at, to + (<usize>least << 2), bytes);
        oneRow(left + <usize>row * deep, rank, right, scratch, scale, add, small);
        memory.copy(to + (<usize>least << 2), at, bytes);
      }
    }
    right += deep << 3;
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
