// Masks of lanes and the bits of words that stand for them.

/** Sixteen lanes of masks as bits. */
@inline
export function bits16(a: v128, b: v128, c: v128, d: v128): u32 {
  const low = i16x8.narrow_i32x4_s(a, b);
  return <u32>i8x16.bitmask(i8x16.narrow_i16x8_s(low, i16x8.narrow_i32x4_s(c, d)));
}
