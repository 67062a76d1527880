// Scores of queries and keys for one group of rows and one head, with f32 sums: shaders/attention-scores.wgsl. Pitches are bytes
// from one row to the next.
import { softCap4 } from './lib/exponential';

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
