// Searching and trimming task vectors by the bits of |τ|: shaders/histogram.wgsl, count-equal.wgsl, select-threshold.wgsl.
import { BLOCK, lanesSum } from './lanes';

const MAGNITUDE: i32 = 0x7fffffff;

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

/** Per block, the number of elements with bits(|τ|) = key. */
export function countEqual(values: usize, elements: i32, key: u32, counts: usize): void {
  const wanted = i32x4.splat(key);
  const magnitude = i32x4.splat(MAGNITUDE);
  for (let begin = 0, out = counts; begin < elements; begin += BLOCK, out += 4) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    let found = i32x4.splat(0);
    let e = 0;
    for (; e + 8 <= n; e += 8) {
      const p = at + (<usize>e << 2);
      found = i32x4.sub(found, i32x4.eq(v128.and(v128.load(p), magnitude), wanted));
      found = i32x4.sub(found, i32x4.eq(v128.and(v128.load(p, 16), magnitude), wanted));
    }
    let sum = lanesSum(found);
    for (; e < n; e++) if ((load<u32>(at + (<usize>e << 2)) & MAGNITUDE) == key) sum++;
    store<u32>(out, sum);
  }
}

/** The least key that passes a threshold where all of its equals pass, or none of them. */
@inline
function least(key: u32, equals: bool): u32 {
  return equals ? key : key + 1;
}

/**
 * Keeps what lies inside the outer threshold and not inside the inner one, and clears the rest; returns how much stays.
 * Elements equal to a threshold stay in blocks before its cut block, and the first `quota` of them in that block.
 */
export function selectThreshold(
  values: usize,
  elements: i32,
  firstBlock: u32,
  outerKey: u32,
  outerCut: u32,
  outerQuota: u32,
  innerKey: u32,
  innerCut: u32,
  innerQuota: u32,
): i32 {
  const magnitude = i32x4.splat(MAGNITUDE);
  let kept = 0;
  for (let begin = 0, block = firstBlock; begin < elements; begin += BLOCK, block++) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    let e = 0;
    let outerLeft: i32 = block < outerCut ? n : block == outerCut ? <i32>outerQuota : 0;
    let innerLeft: i32 = block < innerCut ? n : block == innerCut ? <i32>innerQuota : 0;
    const whole =
      (outerLeft == 0 || outerLeft >= n) && (innerLeft == 0 || innerLeft >= n);
    if (whole) {
      const from = i32x4.splat(least(outerKey, outerLeft > 0));
      const to = i32x4.splat(least(innerKey, innerLeft > 0));
      let found = i32x4.splat(0);
      for (; e + 4 <= n; e += 4) {
        const p = at + (<usize>e << 2);
        const x = v128.load(p);
        const key = v128.and(x, magnitude);
        const stays = v128.andnot(i32x4.ge_u(key, from), i32x4.ge_u(key, to));
        found = i32x4.sub(found, stays);
        v128.store(p, v128.and(x, stays));
      }
      kept += lanesSum(found);
    }
    for (; e < n; e++) {
      const p = at + (<usize>e << 2);
      const key = load<u32>(p) & MAGNITUDE;
      const outer = key > outerKey || (key == outerKey && outerLeft-- > 0);
      const inner = key > innerKey || (key == innerKey && innerLeft-- > 0);
      if (outer && !inner) kept++;
      else store<u32>(p, 0);
    }
  }
  return kept;
}
