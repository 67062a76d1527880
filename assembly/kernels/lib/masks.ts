// Masks of lanes and the bits of words that stand for them.

/** Sixteen lanes of masks as bits. */
@inline
export function bits16(a: v128, b: v128, c: v128, d: v128): u32 {
  const low = i16x8.narrow_i32x4_s(a, b);
  return <u32>i8x16.bitmask(i8x16.narrow_i16x8_s(low, i16x8.narrow_i32x4_s(c, d)));
}

/** Clears those of n elements whose bit is not set; returns how many stay. */
export function applyBits(values: usize, n: i32, bits: usize): i32 {
  const lanes = i32x4(1, 2, 4, 8);
  let kept = 0;
  let e = 0;
  for (; e + 32 <= n; e += 32) {
    const word = load<u32>(bits + (<usize>e >> 3));
    kept += popcnt(word);
    for (let i = 0; i < 32; i += 4) {
      const p = values + (<usize>(e + i) << 2);
      const stays = i32x4.eq(v128.and(i32x4.splat(word >> i), lanes), lanes);
      v128.store(p, v128.and(v128.load(p), stays));
    }
  }
  for (; e < n; e++) {
    const stays = (load<u32>(bits + (<usize>(e >> 5) << 2)) >> (e & 31)) & 1;
    kept += stays;
    if (!stays) store<u32>(values + (<usize>e << 2), 0);
  }
  return kept;
}
