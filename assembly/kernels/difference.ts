// Two versions of a tile in one pass: shaders/difference.wgsl, to the bit.
import { BLOCK, flush, flushOne, hasSmall, lanesSum } from './lib/lanes';
import { absoluteSum } from './absolute-sum';
import { dotBlock } from './lib/sums';

/** Bytes of one segment's figures. */
const FIGURES: usize = 36;
const SIGN: u32 = 0x80000000;

/** Δ of n elements of one segment, its largest size, and the counts of changed, flipped and different ones. */
function differ(a: usize, b: usize, n: i32, threshold: f32, delta: usize, figures: usize): void {
  const least = f32x4.splat(threshold);
  const sign = i32x4.splat(SIGN);
  const zero = i32x4.splat(0);
  let largest = zero;
  let changed = zero;
  let flipped = zero;
  let different = zero;
  let e: usize = 0;
  const whole = <usize>(n & ~3) << 2;
  for (; e < whole; e += 16) {
    const x = v128.load(a + e);
    const y = v128.load(b + e);
    const d = flush(f32x4.sub(y, x));
    v128.store(delta + e, d);
    const size = f32x4.abs(d);
    largest = f32x4.pmax(largest, size);
    changed = i32x4.sub(changed, f32x4.gt(size, least));
    different = i32x4.sub(different, i32x4.ne(x, y));
    const opposite = i32x4.shr_s(v128.xor(x, y), 31);
    const one = i32x4.ne(v128.andnot(x, sign), zero);
    const both = v128.and(one, i32x4.ne(v128.andnot(y, sign), zero));
    flipped = i32x4.sub(flipped, v128.and(opposite, both));
  }
  let most: f32 = max(
    max(f32x4.extract_lane(largest, 0), f32x4.extract_lane(largest, 1)),
    max(f32x4.extract_lane(largest, 2), f32x4.extract_lane(largest, 3)),
  );
  let changes = lanesSum(changed);
  let flips = lanesSum(flipped);
  let differs = lanesSum(different);
  for (; e < <usize>n << 2; e += 4) {
    const x = load<u32>(a + e);
    const y = load<u32>(b + e);
    const d = flushOne(reinterpret<f32>(y) - reinterpret<f32>(x));
    store<f32>(delta + e, d);
    const size = abs(d);
    if (size > most) most = size;
    if (size > threshold) changes++;
    if (x != y) differs++;
    if (((x ^ y) & SIGN) != 0 && (x & ~SIGN) != 0 && (y & ~SIGN) != 0) flips++;
  }
  store<f32>(figures, most, 20);
  store<i32>(figures, changes, 24);
  store<i32>(figures, flips, 28);
  store<i32>(figures, differs, 32);
}

/** Δ = b − a of [rows, cols], and nine words for every segment of at most 4096 columns. `scratch`: 256 bytes. */
export function difference(
  a: usize,
  b: usize,
  rows: i32,
  cols: i32,
  threshold: f32,
  delta: usize,
  sums: usize,
  scratch: usize,
): void {
  let out = sums;
  let at: usize = 0;
  for (let row = 0; row < rows; row++) {
    for (let first = 0; first < cols; first += BLOCK) {
      const n = min(BLOCK, cols - first);
      const p = a + at;
      const q = b + at;
      const d = delta + at;
      differ(p, q, n, threshold, d, out);
      const smallP = hasSmall(p, n);
      const smallQ = hasSmall(q, n);
      absoluteSum(d, n, out, scratch);
      store<f32>(out, dotBlock(d, d, n, hasSmall(d, n), scratch), 4);
      store<f32>(out, dotBlock(p, p, n, smallP, scratch), 8);
      store<f32>(out, dotBlock(q, q, n, smallQ, scratch), 12);
      store<f32>(out, dotBlock(p, q, n, smallP || smallQ, scratch), 16);
      out += FIGURES;
      at += <usize>n << 2;
    }
  }
}
