// One digit of the radix select over the bits of |τ|: shaders/histogram.wgsl.
import { MAGNITUDE } from './lib/lanes';

/** Bins from here on are free in all digits but the first. */
const REFUSED: i32 = 1024;

@inline
function count(bins: usize, digit: u32): void {
  const at = bins + (<usize>digit << 2);
  store<u32>(at, load<u32>(at) + 1);
}

/** bins[(key >> shift) & mask] += 1 for the keys whose bits from `prefixShift` on equal `prefix`. */
export function histogram(
  values: usize,
  n: i32,
  shift: i32,
  mask: u32,
  prefixShift: i32,
  prefix: u32,
  bins: usize,
): void {
  const end = values + (<usize>n << 2);
  let p = values;
  if (prefixShift < 20) {
    // next to no key matches: four are refused at a time
    const wanted = i32x4.splat(prefix);
    const magnitude = i32x4.splat(MAGNITUDE);
    for (; p + 16 <= end; p += 16) {
      const key = v128.and(v128.load(p), magnitude);
      const hit = i32x4.eq(i32x4.shr_u(key, prefixShift), wanted);
      if (!v128.any_true(hit)) continue;
      if (i32x4.extract_lane(hit, 0)) count(bins, (<u32>i32x4.extract_lane(key, 0) >> shift) & mask);
      if (i32x4.extract_lane(hit, 1)) count(bins, (<u32>i32x4.extract_lane(key, 1) >> shift) & mask);
      if (i32x4.extract_lane(hit, 2)) count(bins, (<u32>i32x4.extract_lane(key, 2) >> shift) & mask);
      if (i32x4.extract_lane(hit, 3)) count(bins, (<u32>i32x4.extract_lane(key, 3) >> shift) & mask);
    }
  } else if (prefixShift < 31) {
    // some match, unpredictably: the others are counted behind the digits, each lane in a bin of its own
    const wanted = i32x4.splat(prefix);
    const magnitude = i32x4.splat(MAGNITUDE);
    const digits = i32x4.splat(mask);
    const others = i32x4(REFUSED, REFUSED + 1, REFUSED + 2, REFUSED + 3);
    const refused = bins + (<usize>REFUSED << 2);
    const before = v128.load(refused);
    for (; p + 16 <= end; p += 16) {
      const key = v128.and(v128.load(p), magnitude);
      const hit = i32x4.eq(i32x4.shr_u(key, prefixShift), wanted);
      const digit = v128.bitselect(v128.and(i32x4.shr_u(key, shift), digits), others, hit);
      count(bins, i32x4.extract_lane(digit, 0));
      count(bins, i32x4.extract_lane(digit, 1));
      count(bins, i32x4.extract_lane(digit, 2));
      count(bins, i32x4.extract_lane(digit, 3));
    }
    v128.store(refused, before);
  } else {
    for (; p + 16 <= end; p += 16) {
      const a = load<u64>(p);
      const b = load<u64>(p, 8);
      count(bins, ((<u32>a & MAGNITUDE) >> shift) & mask);
      count(bins, ((<u32>(a >> 32) & MAGNITUDE) >> shift) & mask);
      count(bins, ((<u32>b & MAGNITUDE) >> shift) & mask);
      count(bins, ((<u32>(b >> 32) & MAGNITUDE) >> shift) & mask);
    }
  }
  for (; p < end; p += 4) {
    const key = load<u32>(p) & MAGNITUDE;
    if (key >> prefixShift == prefix) count(bins, (key >> shift) & mask);
  }
}
