// Bits of numbers of 16 and 32 bits: shaders/lib/half.wgsl and src/formats/half.ts.

export const EXPONENT: u32 = 0x7f800000;

@inline
export function notFinite(bits: v128): v128 {
  const exponent = i32x4.splat(EXPONENT);
  return i32x4.eq(v128.and(bits, exponent), exponent);
}

/** One NaN for all: which NaN an operation makes differs between devices. */
@inline
export function canonical(bits: v128): v128 {
  const key = v128.and(bits, i32x4.splat(0x7fffffff));
  return v128.bitselect(i32x4.splat(0x7fc00000), bits, i32x4.gt_s(key, i32x4.splat(EXPONENT)));
}

@inline
export function narrowBf16x4(bits: v128): v128 {
  const odd = v128.and(i32x4.shr_u(bits, 16), i32x4.splat(1));
  return i32x4.shr_u(i32x4.add(i32x4.add(bits, i32x4.splat(0x7fff)), odd), 16);
}

/** To nearest even; below 2^-14 by adding 0.5, whose last place is f16's smallest step. */
@inline
export function narrowF16x4(bits: v128): v128 {
  const sign = v128.and(i32x4.shr_u(bits, 16), i32x4.splat(0x8000));
  const a = v128.and(bits, i32x4.splat(0x7fffffff));
  const odd = v128.and(i32x4.shr_u(a, 13), i32x4.splat(1));
  const half = f32x4.splat(0.5);
  const small = i32x4.sub(f32x4.add(a, half), half);
  const normal = i32x4.shr_u(i32x4.add(i32x4.sub(a, i32x4.splat(0x38000000 - 0xfff)), odd), 13);
  let h = v128.bitselect(small, normal, i32x4.lt_s(a, i32x4.splat(0x38800000)));
  h = v128.bitselect(i32x4.splat(0x7c00), h, i32x4.gt_s(a, i32x4.splat(0x477fefff)));
  h = v128.bitselect(i32x4.splat(0x7e00), h, i32x4.gt_s(a, i32x4.splat(EXPONENT)));
  return v128.or(sign, h);
}

export function widenF16(h: u32): u32 {
  const sign = (h & 0x8000) << 16;
  const rest = h & 0x7fff;
  if (rest >= 0x7c00) return sign | EXPONENT | ((rest & 0x3ff) << 13);
  if (rest >= 0x400) return sign | ((rest << 13) + (112 << 23));
  return sign | reinterpret<u32>(<f32>rest * reinterpret<f32>(0x33800000));
}
