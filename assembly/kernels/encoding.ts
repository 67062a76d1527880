import { encodeQ4K, encodeQ5K, encodeQ6K } from './lib/k-blocks';
import { canonical, EXPONENT, flush, lanesSum, narrowBf16x4, narrowF16x4, notFinite, widenF16 } from './lib/lanes';
import { encodePlain, encodeQ8_0, encodeWeighted } from './lib/simple-blocks';

export { changeSquares } from './lib/lanes';

// Stored halves and words to f32: shaders/encoding/decode.wgsl.

@inline
function widenBf16(h: u32): u32 {
  return h << 16;
}

/** Four halves, each in the low half of a lane. f16's subnormals are ordinary f32: m · 2^-24 is exact. */
@inline
function widenF16x4(h: v128): v128 {
  const sign = i32x4.shl(v128.and(h, i32x4.splat(0x8000)), 16);
  const rest = v128.and(h, i32x4.splat(0x7fff));
  const normal = i32x4.add(i32x4.shl(rest, 13), i32x4.splat(112 << 23));
  const special = v128.or(normal, i32x4.splat(EXPONENT));
  const small = f32x4.mul(f32x4.convert_i32x4_s(rest), f32x4.splat(reinterpret<f32>(0x33800000)));
  const wide = v128.bitselect(special, normal, i32x4.gt_s(rest, i32x4.splat(0x7bff)));
  return v128.or(sign, v128.bitselect(small, wide, i32x4.lt_s(rest, i32x4.splat(0x400))));
}

@inline
function flushBits(bits: u32): u32 {
  return (bits << 1) - 1 < 0x1000000 ? bits & 0x80000000 : bits;
}

@inline
function widen(raw: usize, out: usize, n: i32, bf16: bool): i32 {
  const zero = i32x4.splat(0);
  let bad = zero;
  let e = 0;
  for (; e + 8 <= n; e += 8) {
    const h = v128.load(raw + (<usize>e << 1));
    let low: v128;
    let high: v128;
    if (bf16) {
      low = v128.shuffle<u16>(zero, h, 0, 8, 1, 9, 2, 10, 3, 11);
      high = v128.shuffle<u16>(zero, h, 4, 12, 5, 13, 6, 14, 7, 15);
    } else {
      low = widenF16x4(i32x4.extend_low_i16x8_u(h));
      high = widenF16x4(i32x4.extend_high_i16x8_u(h));
    }
    bad = i32x4.sub(bad, i32x4.add(notFinite(low), notFinite(high)));
    const p = out + (<usize>e << 2);
    v128.store(p, flush(low));
    v128.store(p, flush(high), 16);
  }
  let count = lanesSum(bad);
  for (; e < n; e++) {
    const h = <u32>load<u16>(raw + (<usize>e << 1));
    const bits = bf16 ? widenBf16(h) : widenF16(h);
    if ((bits & EXPONENT) == EXPONENT) count++;
    store<u32>(out + (<usize>e << 2), flushBits(bits));
  }
  return count;
}

/** n stored elements at `raw` to f32 at `out`; returns how many are not finite. dtype 0 F32, 1 F16, 2 BF16. */
export function decode(raw: usize, out: usize, n: i32, dtype: i32): i32 {
  if (dtype == 2) return widen(raw, out, n, true);
  if (dtype == 1) return widen(raw, out, n, false);
  let bad = i32x4.splat(0);
  let e = 0;
  for (; e + 4 <= n; e += 4) {
    const bits = v128.load(raw + (<usize>e << 2));
    bad = i32x4.sub(bad, notFinite(bits));
    v128.store(out + (<usize>e << 2), flush(bits));
  }
  let count = lanesSum(bad);
  for (; e < n; e++) {
    const bits = load<u32>(raw + (<usize>e << 2));
    if ((bits & EXPONENT) == EXPONENT) count++;
    store<u32>(out + (<usize>e << 2), flushBits(bits));
  }
  return count;
}

// f32 to the output dtype: shaders/encoding/encode.wgsl and shaders/lib/pack.wgsl.


@inline
function narrow(values: usize, out: usize, n: i32, bf16: bool): i32 {
  const special = i32x4.splat(bf16 ? 0x7f80 : 0x7c00);
  let bad = i32x4.splat(0);
  let e = 0;
  for (; e + 8 <= n; e += 8) {
    const p = values + (<usize>e << 2);
    const x = canonical(v128.load(p));
    const y = canonical(v128.load(p, 16));
    const low = bf16 ? narrowBf16x4(x) : narrowF16x4(x);
    const high = bf16 ? narrowBf16x4(y) : narrowF16x4(y);
    bad = i32x4.sub(bad, i32x4.eq(v128.and(low, special), special));
    bad = i32x4.sub(bad, i32x4.eq(v128.and(high, special), special));
    v128.store(out + (<usize>e << 1), i16x8.narrow_i32x4_u(low, high));
  }
  let count = lanesSum(bad);
  for (; e < n; e++) {
    const x = canonical(v128.load32_zero(values + (<usize>e << 2)));
    const h = i32x4.extract_lane(bf16 ? narrowBf16x4(x) : narrowF16x4(x), 0);
    const mask = bf16 ? 0x7f80 : 0x7c00;
    if ((h & mask) == mask) count++;
    store<u16>(out + (<usize>e << 1), <u16>h);
  }
  if (n & 1) store<u16>(out + (<usize>n << 1), 0);
  return count;
}

/** n f32 at `values` to the output dtype at `out`, rounded once to nearest even; returns how many are not finite. */
export function encode(values: usize, out: usize, n: i32, dtype: i32): i32 {
  if (dtype == 2) return narrow(values, out, n, true);
  if (dtype == 1) return narrow(values, out, n, false);
  let bad = i32x4.splat(0);
  let e = 0;
  for (; e + 4 <= n; e += 4) {
    const bits = canonical(v128.load(values + (<usize>e << 2)));
    bad = i32x4.sub(bad, notFinite(bits));
    v128.store(out + (<usize>e << 2), bits);
  }
  let count = lanesSum(bad);
  for (; e < n; e++) {
    let bits = load<u32>(values + (<usize>e << 2));
    if ((bits & 0x7fffffff) > EXPONENT) bits = 0x7fc00000;
    if ((bits & EXPONENT) == EXPONENT) count++;
    store<u32>(out + (<usize>e << 2), bits);
  }
  return count;
}

// Rows of f32 to the blocks of a GGUF tensor, bit for bit as ggml's reference makes them.

/**
 * One row of `columns` f32, a whole number of blocks. `type`: ggml's number of it. `importance`: an f32 for every column,
 * or 0. `scratch`: 4 kB.
 */
export function encodeBlocks(
  x: usize,
  columns: i32,
  type: i32,
  importance: usize,
  out: usize,
  scratch: usize,
): void {
  if (type == 8) encodeQ8_0(x, columns, out);
  else if (type == 12) encodeQ4K(x, columns, importance, out, scratch);
  else if (type == 13) encodeQ5K(x, columns, importance, out, scratch);
  else if (type == 14) encodeQ6K(x, columns, importance, out, scratch);
  else {
    const most = type < 6 ? 15 : 31;
    const withMin = (type & 1) == 1;
    if (importance) encodeWeighted(x, columns, importance, most, withMin, out, scratch);
    else encodePlain(x, columns, most, withMin, out, scratch);
  }
}
