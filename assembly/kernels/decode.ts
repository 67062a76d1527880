// Stored halves and words to f32: shaders/decode.wgsl.
import { EXPONENT, notFinite, widenF16 } from './lib/half';
import { flush, lanesSum } from './lib/lanes';

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
