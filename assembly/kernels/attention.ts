import { exp4, largest, plus4, softCap4, sumOf } from './lib/exponential';
import { fourByEight, high0, high1, high2, high3, low0, low1, low2, low3 } from './lib/panels';

// Heads to their places, rotated: shaders/attention/place-heads.wgsl. In halves, four pairs at a time.

/** One head of one row. @param cos cosines of its position, the sines behind them @param half pairs that rotate */
@inline
function head(x: usize, y: usize, cos: usize, half: i32, dim: i32, adjacent: bool): void {
  const sin = cos + (<usize>half << 2);
  const other: usize = adjacent ? 4 : <usize>half << 2;
  const pair: usize = adjacent ? 8 : 4;
  let i = 0;
  if (!adjacent) {
    for (; i + 4 <= half; i += 4) {
      const at = <usize>i << 2;
      const a = v128.load(x + at);
      const b = v128.load(x + other + at);
      const c = v128.load(cos + at);
      const s = v128.load(sin + at);
      v128.store(y + at, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)));
      v128.store(y + other + at, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)));
    }
  }
  for (; i < half; i++) {
    const at = <usize>i * pair;
    const a = load<f32>(x + at);
    const b = load<f32>(x + other + at);
    const c = load<f32>(cos + (<usize>i << 2));
    const s = load<f32>(sin + (<usize>i << 2));
    store<f32>(y + at, a * c - b * s);
    store<f32>(y + other + at, b * c + a * s);
  }
  const rotated = <usize>half << 3;
  if (rotated < <usize>dim << 2) memory.copy(y + rotated, x + rotated, (<usize>dim << 2) - rotated);
}

/** The heads of a row. @param x its first head @param group heads of a group, groups `groupPitch` bytes apart */
export function placeRow(
  x: usize,
  y: usize,
  cos: usize,
  heads: i32,
  dim: i32,
  half: i32,
  headPitch: usize,
  group: i32,
  groupPitch: usize,
  yPitch: usize,
  adjacent: bool,
): void {
  for (let h = 0; h < heads; h++) {
    const from = x + <usize>(h / group) * groupPitch + <usize>(h % group) * headPitch;
    head(from, y + <usize>h * yPitch, cos, half, dim, adjacent);
  }
}

// Scores of queries and keys for one group of rows and one head, with f32 sums: shaders/lib/attention.wgsl. Pitches are bytes
// from one row to the next.

/** Four scores scaled, capped and slanted; `column` is the key of the first. */
@inline
function put(out: usize, sums: v128, scale: f32, cap: f32, slope: f32, column: i32): void {
  let v = f32x4.mul(sums, f32x4.splat(scale));
  if (cap > 0) v = softCap4(v, cap);
  if (slope != 0) {
    const keys = f32x4.add(f32x4.splat(<f32>column), f32x4(0, 1, 2, 3));
    v = f32x4.add(v, f32x4.mul(f32x4.splat(slope), keys));
  }
  v128.store(out, v);
}

/** The sums of the lanes of four vectors. */
@inline
function across(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<u32>(a, b, 0, 4, 1, 5), v128.shuffle<u32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<u32>(c, d, 0, 4, 1, 5), v128.shuffle<u32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<u64>(ab, cd, 0, 2), v128.shuffle<u64>(ab, cd, 1, 3));
}

/** One query by four keys. */
@inline
function dots(q: usize, k0: usize, k1: usize, k2: usize, k3: usize, bytes: usize): v128 {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  for (let i: usize = 0; i < bytes; i += 16) {
    const x = v128.load(q + i);
    a = f32x4.add(a, f32x4.mul(x, v128.load(k0 + i)));
    b = f32x4.add(b, f32x4.mul(x, v128.load(k1 + i)));
    c = f32x4.add(c, f32x4.mul(x, v128.load(k2 + i)));
    d = f32x4.add(d, f32x4.mul(x, v128.load(k3 + i)));
  }
  return across(a, b, c, d);
}

/**
 * Scores [rows][span] of up to four queries and `columns` keys, in fours; past the last key it is taken again.
 * @param q first query; @param k first key; @param column the key's number, for the slope
 */
export function attentionScores(
  q: usize,
  qPitch: usize,
  rows: i32,
  k: usize,
  kPitch: usize,
  columns: i32,
  dim: i32,
  out: usize,
  outPitch: usize,
  scale: f32,
  cap: f32,
  slope: f32,
  column: i32,
): void {
  const bytes = <usize>dim << 2;
  const last = k + <usize>(columns - 1) * kPitch;
  for (let c = 0; c < columns; c += 4) {
    const k0 = k + <usize>c * kPitch;
    const k1 = min(k0 + kPitch, last);
    const k2 = min(k0 + 2 * kPitch, last);
    const k3 = min(k0 + 3 * kPitch, last);
    const to = out + (<usize>c << 2);
    for (let r = 0; r < rows; r++) {
      const sums = dots(q + <usize>r * qPitch, k0, k1, k2, k3, bytes);
      put(to + <usize>r * outPitch, sums, scale, cap, slope, column + c);
    }
  }
}

// Softmax of lines of attention scores: shaders/lib/attention.wgsl. Exponentials in f32 (lib/exponential.ts), their sums
// in f64. A line’s bits depend on its own numbers alone.

const NOTHING: f32 = -Infinity;

/** Lanes of the quad at column c that lie in [first, end). */
@inline
function seen(c: i32, first: i32, end: i32): v128 {
  const columns = i32x4.add(i32x4.splat(c), i32x4(0, 1, 2, 3));
  return v128.and(i32x4.ge_s(columns, i32x4.splat(first)), i32x4.lt_s(columns, i32x4.splat(end)));
}

/** The quad at p, column c, with −∞ where it lies outside [first, end). */
@inline
function quad(p: usize, c: i32, first: i32, end: i32): v128 {
  const v = v128.load(p);
  if (c >= first && c + 4 <= end) return v;
  return v128.bitselect(v, f32x4.splat(NOTHING), seen(c, first, end));
}

/** Softmax over columns [first, end) of a line of `columns` (a multiple of 4), in place; the others become 0. */
export function softmaxLine(line: usize, columns: i32, first: i32, end: i32): void {
  const from = first & ~3;
  const to = min(columns, (end + 3) & ~3);
  // a NaN may get lost here; its own exponential brings it back
  let tops = f32x4.splat(NOTHING);
  for (let c = from; c < to; c += 4) tops = f32x4.pmax(tops, quad(line + (<usize>c << 2), c, first, end));
  const top = f32x4.splat(largest(tops));
  let sums = f64x2.splat(0);
  for (let c = from; c < to; c += 4) {
    const p = line + (<usize>c << 2);
    const e = exp4(f32x4.sub(quad(p, c, first, end), top));
    v128.store(p, e);
    sums = plus4(sums, e);
  }
  const total = f32x4.splat(<f32>sumOf(sums));
  for (let c = from; c < to; c += 4) {
    const p = line + (<usize>c << 2);
    v128.store(p, f32x4.div(v128.load(p), total));
  }
  memory.fill(line, 0, <usize>from << 2);
  if (to < columns) memory.fill(line + (<usize>to << 2), 0, <usize>(columns - to) << 2);
}

// Values mixed by their shares for one group of rows and one head, with f32 sums: shaders/lib/attention.wgsl. Pitches are bytes
// from one row to the next.

/** Eight dimensions of four rows. */
function mixFour(shares: usize, sharePitch: usize, v: usize, vPitch: usize, n: i32, y: usize, yPitch: usize): void {
  fourByEight(shares, shares + sharePitch, shares + 2 * sharePitch, shares + 3 * sharePitch, 4, v, vPitch, n);
  v128.store(y, low0);
  v128.store(y, high0, 16);
  v128.store(y + yPitch, low1);
  v128.store(y + yPitch, high1, 16);
  v128.store(y + 2 * yPitch, low2);
  v128.store(y + 2 * yPitch, high2, 16);
  v128.store(y + 3 * yPitch, low3);
  v128.store(y + 3 * yPitch, high3, 16);
}

/** Sixteen dimensions of one row. */
function mixWide(shares: usize, v: usize, vPitch: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  const end = shares + (<usize>n << 2);
  for (; shares < end; shares += 4) {
    const p = v128.load32_splat(shares);
    a = f32x4.add(a, f32x4.mul(p, v128.load(v)));
    b = f32x4.add(b, f32x4.mul(p, v128.load(v, 16)));
    c = f32x4.add(c, f32x4.mul(p, v128.load(v, 32)));
    d = f32x4.add(d, f32x4.mul(p, v128.load(v, 48)));
    v += vPitch;
  }
  v128.store(y, a);
  v128.store(y, b, 16);
  v128.store(y, c, 32);
  v128.store(y, d, 48);
}

/** Four dimensions of one row. */
function mixNarrow(shares: usize, v: usize, vPitch: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  const end = shares + (<usize>n << 2);
  for (; shares < end; shares += 4) {
    a = f32x4.add(a, f32x4.mul(v128.load32_splat(shares), v128.load(v)));
    v += vPitch;
  }
  v128.store(y, a);
}

/** y [rows][dim] of up to four rows: the first `keys` values from `v` on, by shares [rows][span]. */
export function attentionMix(
  shares: usize,
  sharePitch: usize,
  rows: i32,
  v: usize,
  vPitch: usize,
  keys: i32,
  dim: i32,
  y: usize,
  yPitch: usize,
): void {
  const bytes = <usize>dim << 2;
  let whole: usize = 0;
  if (rows == 4) {
    for (; whole + 32 <= bytes; whole += 32) mixFour(shares, sharePitch, v + whole, vPitch, keys, y + whole, yPitch);
  }
  for (let r = 0; r < rows; r++) {
    const line = shares + <usize>r * sharePitch;
    const to = y + <usize>r * yPitch;
    let at = whole;
    for (; at + 64 <= bytes; at += 64) mixWide(line, v + at, vPitch, keys, to + at);
    for (; at < bytes; at += 16) mixNarrow(line, v + at, vPitch, keys, to + at);
  }
}
