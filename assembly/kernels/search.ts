import { bits16, BLOCK, lanesSum, MAGNITUDE } from './lib/lanes';
import { rankRow } from './lib/ranks';

export { pickChanges, sampleChanges } from './lib/stored-changes';

// One digit of the radix select over the bits of |τ|: shaders/search/histogram.wgsl.

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

/** Bytes of a histogram: eight copies of 2048 bins. */
export const HISTOGRAM: usize = 8 << 13;

/** The histogram of the first digit; neighbors go to copies of their own, for they are often in one bin. */
export function countKeys(values: usize, n: i32, bins: usize): void {
  const end = values + (<usize>n << 2);
  let p = values;
  for (; p + 16 <= end; p += 16) {
    const a = load<u64>(p);
    const b = load<u64>(p, 8);
    count(bins, (<u32>a & MAGNITUDE) >> 20);
    count(bins + 8192, ((<u32>(a >> 32)) & MAGNITUDE) >> 20);
    count(bins + 16384, (<u32>b & MAGNITUDE) >> 20);
    count(bins + 24576, ((<u32>(b >> 32)) & MAGNITUDE) >> 20);
  }
  for (; p < end; p += 4) count(bins, (load<u32>(p) & MAGNITUDE) >> 20);
}

// Elements with one magnitude: shaders/search/count-equal.wgsl.

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

// Keys in relation to a window of keys: shaders/search/count-window.wgsl.

/** Counts by lane, with those of four masks. */
@inline
function plus(count: v128, a: v128, b: v128, c: v128, d: v128): v128 {
  return i32x4.sub(count, i32x4.add(i32x4.add(a, b), i32x4.add(c, d)));
}

/**
 * Five words a block to `counts`: keys above `hi`, equal to it, equal to `lo`, place in the list, keys between. The latter
 * are put behind the counter at `list` while there is `room`.
 */
export function countWindow(
  values: usize,
  elements: i32,
  lo: i32,
  hi: i32,
  counts: usize,
  list: usize,
  room: u32,
): void {
  const magnitude = i32x4.splat(MAGNITUDE);
  const low = i32x4.splat(lo);
  const high = i32x4.splat(hi);
  const belowHigh = i32x4.splat(hi - 1);
  const entries = list + 4;
  let next = load<u32>(list);
  for (let begin = 0; begin < elements; begin += BLOCK) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    const first = next;
    let above = i32x4.splat(0);
    let reached = above;
    let lowest = above;
    let e = 0;
    for (; e + 16 <= n; e += 16) {
      const p = at + (<usize>e << 2);
      const x0 = v128.and(v128.load(p), magnitude);
      const x1 = v128.and(v128.load(p, 16), magnitude);
      const x2 = v128.and(v128.load(p, 32), magnitude);
      const x3 = v128.and(v128.load(p, 48), magnitude);
      const reach0 = i32x4.gt_s(x0, belowHigh);
      const reach1 = i32x4.gt_s(x1, belowHigh);
      const reach2 = i32x4.gt_s(x2, belowHigh);
      const reach3 = i32x4.gt_s(x3, belowHigh);
      above = plus(above, i32x4.gt_s(x0, high), i32x4.gt_s(x1, high), i32x4.gt_s(x2, high), i32x4.gt_s(x3, high));
      reached = plus(reached, reach0, reach1, reach2, reach3);
      lowest = plus(lowest, i32x4.eq(x0, low), i32x4.eq(x1, low), i32x4.eq(x2, low), i32x4.eq(x3, low));
      let bits = bits16(
        v128.andnot(i32x4.gt_s(x0, low), reach0),
        v128.andnot(i32x4.gt_s(x1, low), reach1),
        v128.andnot(i32x4.gt_s(x2, low), reach2),
        v128.andnot(i32x4.gt_s(x3, low), reach3),
      );
      while (bits) {
        if (next < room) store<i32>(entries + (<usize>next << 2), load<i32>(p + (<usize>ctz(bits) << 2)) & MAGNITUDE);
        next++;
        bits &= bits - 1;
      }
    }
    let aboves = lanesSum(above);
    let highests = lanesSum(reached) - aboves;
    let lowests = lanesSum(lowest);
    for (; e < n; e++) {
      const key = load<i32>(at + (<usize>e << 2)) & MAGNITUDE;
      if (key > hi) aboves++;
      if (key == hi) highests++;
      if (key == lo) lowests++;
      if (key > lo && key < hi) {
        if (next < room) store<i32>(entries + (<usize>next << 2), key);
        next++;
      }
    }
    store<i32>(counts, aboves);
    store<i32>(counts, highests, 4);
    store<i32>(counts, lowests, 8);
    store<u32>(counts, first, 12);
    store<u32>(counts, next - first, 16);
    counts += 20;
  }
  store<u32>(list, next);
}

// Every n-th magnitude of a tensor: shaders/search/sample-keys.wgsl.

/** Every `step`-th key of a tensor, by its flat index; `first`: flat index of the first value. */
export function sampleKeys(values: usize, n: i32, first: u32, step: u32, keys: usize): void {
  const end = first + <u32>n;
  for (let i: u32 = (first + step - 1) / step; i * step < end; i++) {
    store<i32>(keys + (<usize>i << 2), load<i32>(values + (<usize>(i * step - first) << 2)) & MAGNITUDE);
  }
}

// Ranks of |τ| inside rows: shaders/search/rank-digit.wgsl.

/**
 * Ranks 0 … cols − 1 of the elements of whole rows, smallest |τ| first and among equals the last index first.
 * `spare`: as many words as `ranks`; `scratch`: 16 KiB.
 */
export function rankRows(
  values: usize,
  elements: i32,
  cols: i32,
  spare: usize,
  ranks: usize,
  scratch: usize,
): void {
  for (let begin: usize = 0; begin < <usize>elements << 2; begin += <usize>cols << 2) {
    rankRow<u32>(values + begin, cols, spare + begin, ranks + begin, scratch);
  }
}
