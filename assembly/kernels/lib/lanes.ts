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

/** Four vectors of four words transposed, into rows `pitch` bytes apart. */
@inline
export function transpose4(a: v128, b: v128, c: v128, d: v128, to: usize, pitch: usize): void {
  const e = v128.shuffle<u32>(a, b, 0, 4, 1, 5);
  const f = v128.shuffle<u32>(c, d, 0, 4, 1, 5);
  const g = v128.shuffle<u32>(a, b, 2, 6, 3, 7);
  const h = v128.shuffle<u32>(c, d, 2, 6, 3, 7);
  v128.store(to, v128.shuffle<u64>(e, f, 0, 2));
  v128.store(to + pitch, v128.shuffle<u64>(e, f, 1, 3));
  v128.store(to + 2 * pitch, v128.shuffle<u64>(g, h, 0, 2));
  v128.store(to + 3 * pitch, v128.shuffle<u64>(g, h, 1, 3));
}

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

// Sums over blocks of 4096: lane l of 64 adds the elements l, l + 64, … and the lanes are added in order (docs/numbers.md).

/** Adds the 64 lane sums at `lanes` in order. */
@inline
export function total(lanes: usize, small: bool): f32 {
  let sum: f32 = 0;
  for (let l = 0; l < 64; l++) sum = roundedOne(sum + load<f32>(lanes + (<usize>l << 2)), small);
  return sum;
}

@inline
function product(sum: v128, a: usize, b: usize, small: bool): v128 {
  return rounded(f32x4.add(sum, rounded(f32x4.mul(v128.load(a), v128.load(b)), small)), small);
}

/** Lane sums of a[e]·b[e], 32 bytes of lanes at a time in two accumulators each. */
@inline
function dotLanes(a: usize, b: usize, n: i32, lanes: usize, small: bool): f32 {
  const rows = n >> 6;
  for (let k: usize = 0; k < 256; k += 64) {
    let s0 = f32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let p = a + k;
    let q = b + k;
    for (let row = 0; row < rows; row++) {
      s0 = product(s0, p, q, small);
      s1 = product(s1, p + 16, q + 16, small);
      s2 = product(s2, p + 32, q + 32, small);
      s3 = product(s3, p + 48, q + 48, small);
      p += 256;
      q += 256;
    }
    v128.store(lanes + k, s0);
    v128.store(lanes + k, s1, 16);
    v128.store(lanes + k, s2, 32);
    v128.store(lanes + k, s3, 48);
  }
  const at = <usize>(rows << 8);
  for (let l: usize = 0; l < <usize>(n & 63) << 2; l += 4) {
    const x = roundedOne(load<f32>(a + at + l) * load<f32>(b + at + l), small);
    store<f32>(lanes + l, roundedOne(load<f32>(lanes + l) + x, small));
  }
  return total(lanes, small);
}

/** Σ a[e]·b[e] of one block of n elements. `lanes`: 256 bytes of scratch. */
export function dotBlock(a: usize, b: usize, n: i32, small: bool, lanes: usize): f32 {
  return small ? dotLanes(a, b, n, lanes, true) : dotLanes(a, b, n, lanes, false);
}

/** Block sums of (out − base)². `scratch`: 256 bytes and a block of f32. */
export function changeSquares(base: usize, out: usize, elements: i32, sums: usize, scratch: usize): void {
  const change = scratch + 256;
  for (let begin = 0, block: usize = 0; begin < elements; begin += BLOCK, block += 4) {
    const n = min(BLOCK, elements - begin);
    const at = <usize>begin << 2;
    let e = 0;
    for (; e + 4 <= n; e += 4) {
      const p = at + (<usize>e << 2);
      v128.store(
        change + (<usize>e << 2),
        flush(f32x4.sub(v128.load(out + p), v128.load(base + p))),
      );
    }
    for (; e < n; e++) {
      const p = at + (<usize>e << 2);
      store<f32>(change + (<usize>e << 2), flushOne(load<f32>(out + p) - load<f32>(base + p)));
    }
    store<f32>(sums + block, dotBlock(change, change, n, hasSmall(change, n), scratch));
  }
}
