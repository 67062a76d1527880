// How weights are stored, as a type, so that each dtype has loops of its own: f32 F32, i16 F16, u16 BF16.

/** Four stored weights from `at` on, as f32. */
@inline
export function wide4<T>(at: usize): v128 {
  if (isFloat<T>()) return v128.load(at);
  if (!isSigned<T>()) return v128.shuffle<u16>(i32x4.splat(0), v128.load64_zero(at), 0, 8, 1, 9, 2, 10, 3, 11);
  return widenF16(i32x4.shl(v128.load_ext<i16>(at), 13));
}

/** Four F16, sign-extended and shifted left by 13, as f32; whatever else is in the words does not matter. */
@inline
export function widenF16(shifted: v128): v128 {
  // sign, exponent and mantissa in their places; the product with 2^112 is exact and moves the exponent, subnormals too
  const moved = v128.and(shifted, i32x4.splat(0x8fffe000));
  const wide = f32x4.mul(moved, f32x4.splat(reinterpret<f32>(0x77800000)));
  const special = f32x4.gt(f32x4.abs(wide), f32x4.splat(65504));
  return v128.or(wide, v128.and(special, i32x4.splat(0x7f800000)));
}
