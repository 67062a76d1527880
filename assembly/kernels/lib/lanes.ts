// Arithmetic of the kernels on four f32 at a time: every operation rounded, without subnormals (src/backend/exact.ts).

export const BLOCK: i32 = 4096;
/** All bits of an f32 but its sign. */
export const MAGNITUDE: i32 = 0x7fffffff;

/** A magnitude up to 2^-126 becomes the zero of its sign; NaN stays. */
@inline
export function flush(x: v128): v128 {
  const tiny = f32x4.le(f32x4.abs(x), f32x4.splat(reinterpret<f32>(0x00800000)));
  return v128.andnot(x, v128.and(tiny, i32x4.splat(0x7fffffff)));
}

/** One rounding step; `small` is known when this is compiled. */
@inline
export function rounded(x: v128, small: bool): v128 {
  return small ? flush(x) : x;
}

/** The same for a single number. */
@inline
export function flushOne(x: f32): f32 {
  const bits = reinterpret<u32>(x);
  return (bits << 1) - 1 < 0x1000000 ? reinterpret<f32>(bits & 0x80000000) : x;
}

@inline
export function roundedOne(x: f32, small: bool): f32 {
  return small ? flushOne(x) : x;
}

/** 2^-50 as in src/backend/exact.ts: without smaller values nothing in a sum of products is subnormal. */
const SMALL_KEY: u32 = ((127 - 50) << 24) - 1;

/** True when one of n f32 is neither zero nor of at least 2^-50. */
export function hasSmall(at: usize, n: i32): bool {
  let least = i32x4.splat(-1);
  let e = 0;
  for (; e + 16 <= n; e += 16) {
    const p = at + (<usize>e << 2);
    least = i32x4.min_u(least, key4(v128.load(p)));
    least = i32x4.min_u(least, key4(v128.load(p, 16)));
    least = i32x4.min_u(least, key4(v128.load(p, 32)));
    least = i32x4.min_u(least, key4(v128.load(p, 48)));
  }
  let one: u32 = 0xffffffff;
  for (; e < n; e++) one = min(one, (load<u32>(at + (<usize>e << 2)) << 1) - 1);
  one = min(one, <u32>i32x4.extract_lane(least, 0));
  one = min(one, <u32>i32x4.extract_lane(least, 1));
  one = min(one, <u32>i32x4.extract_lane(least, 2));
  one = min(one, <u32>i32x4.extract_lane(least, 3));
  return one < SMALL_KEY;
}

@inline
function key4(bits: v128): v128 {
  return i32x4.sub(i32x4.shl(bits, 1), i32x4.splat(1));
}

/** How many of four lanes of a mask are set, as 0 or −1 a lane to be subtracted from a counter. */
@inline
export function lanesSum(counter: v128): i32 {
  return (
    i32x4.extract_lane(counter, 0) +
    i32x4.extract_lane(counter, 1) +
    i32x4.extract_lane(counter, 2) +
    i32x4.extract_lane(counter, 3)
  );
}
