import { decode } from './encoding';
import { bits16, BLOCK, canonical, dotBlock, flushOne, hasSmall, lanesSum, narrowBf16x4, narrowF16x4, rounded, total } from './lib/lanes';
import { addLanes, addTo, four, isLarge, isPlain, leastKey, ROW, SLOT, wasSmall } from './lib/stored';

// Block sums of |v|: shaders/statistics/absolute-sum.wgsl.

/** Block sums of |v|; sums of one sign are never subnormal. `scratch`: 256 bytes. */
export function absoluteSum(values: usize, elements: i32, sums: usize, scratch: usize): void {
  for (let begin = 0, block: usize = 0; begin < elements; begin += BLOCK, block += 4) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    const rows = n >> 6;
    for (let k: usize = 0; k < 256; k += 32) {
      let s0 = f32x4.splat(0);
      let s1 = s0;
      let p = at + k;
      for (let row = 0; row < rows; row++) {
        s0 = f32x4.add(s0, f32x4.abs(v128.load(p)));
        s1 = f32x4.add(s1, f32x4.abs(v128.load(p, 16)));
        p += 256;
      }
      v128.store(scratch + k, s0);
      v128.store(scratch + k, s1, 16);
    }
    const rest = at + (<usize>rows << 8);
    for (let l: usize = 0; l < <usize>(n & 63) << 2; l += 4) {
      store<f32>(scratch + l, load<f32>(scratch + l) + abs(load<f32>(rest + l)));
    }
    store<f32>(sums + block, total(scratch, true));
  }
}

// Two versions of a tile in one pass: shaders/statistics/difference.wgsl, to the bit. Values are taken as they are stored; a
// segment that is not plain (lib/stored.ts) is decoded first, and its sums are flushed.

/** Bytes of one segment's figures. */
const FIGURES: usize = 36;
const SIGN: u32 = 0x80000000;

/** Whether each of n values is plain. */
function allPlain<T>(at: usize, n: i32): bool {
  let e = n & ~15;
  if (!isPlain<T>(at, e)) return false;
  let least = i32x4.splat(-1);
  let most = i32x4.splat(0);
  for (; e + 4 <= n; e += 4) {
    const x = four<T>(at + <usize>e * sizeof<T>());
    least = leastKey(least, x);
    most = i32x4.max_u(most, i32x4.shl(x, 1));
  }
  for (; e < n; e++) {
    const x = i32x4.splat(oneOf<T>(at + <usize>e * sizeof<T>()));
    least = leastKey(least, x);
    most = i32x4.max_u(most, i32x4.shl(x, 1));
  }
  return !wasSmall(least) && !isLarge(most);
}

@inline
function oneOf<T>(at: usize): u32 {
  return isFloat<T>() ? load<u32>(at) : <u32>load<u16>(at) << 16;
}

/**
 * The figures of n plain elements of one segment, and Δ where it has an address; false where a Δ is so small that its square
 * has to be flushed. `lanes`: 2 KiB.
 */
function differPlain<T>(a: usize, b: usize, n: i32, threshold: f32, delta: usize, figures: usize, lanes: usize): bool {
  const least = f32x4.splat(threshold);
  const zero = f32x4.splat(0);
  let smallest = i32x4.splat(-1);
  let largest = zero;
  let changed = zero;
  let flipped = zero;
  let different = zero;
  const rows = n >> 6;
  for (let column: usize = 0; column < ROW; column += 4) {
    let absolute = zero;
    let squares = zero;
    let ones = zero;
    let others = zero;
    let products = zero;
    let p = a + column * sizeof<T>();
    let q = b + column * sizeof<T>();
    let to = delta + (column << 2);
    for (let row = 0; row < rows; row++) {
      const x = four<T>(p);
      const y = four<T>(q);
      const d = f32x4.sub(y, x);
      if (delta) v128.store(to, d);
      if (isFloat<T>()) smallest = leastKey(smallest, d);
      const size = f32x4.abs(d);
      const product = f32x4.mul(x, y);
      absolute = f32x4.add(absolute, size);
      squares = f32x4.add(squares, f32x4.mul(d, d));
      ones = f32x4.add(ones, f32x4.mul(x, x));
      others = f32x4.add(others, f32x4.mul(y, y));
      products = f32x4.add(products, product);
      largest = f32x4.pmax(largest, size);
      changed = i32x4.sub(changed, f32x4.gt(size, least));
      flipped = i32x4.sub(flipped, f32x4.lt(product, zero));
      different = i32x4.sub(different, i32x4.ne(x, y));
      p += ROW * sizeof<T>();
      q += ROW * sizeof<T>();
      to += ROW << 2;
    }
    const lane = lanes + (column << 2);
    v128.store(lane, absolute);
    v128.store(lane, squares, 256);
    v128.store(lane, ones, 512);
    v128.store(lane, others, 768);
    v128.store(lane, products, 1024);
  }
  let most: f32 = max(
    max(f32x4.extract_lane(largest, 0), f32x4.extract_lane(largest, 1)),
    max(f32x4.extract_lane(largest, 2), f32x4.extract_lane(largest, 3)),
  );
  let changes = lanesSum(changed);
  let flips = lanesSum(flipped);
  let differs = lanesSum(different);
  const done = <usize>rows << 6;
  for (let e = done, lane = lanes; e < <usize>n; e++, lane += 4) {
    const x = reinterpret<f32>(oneOf<T>(a + e * sizeof<T>()));
    const y = reinterpret<f32>(oneOf<T>(b + e * sizeof<T>()));
    const d = y - x;
    if (delta) store<f32>(delta + (e << 2), d);
    if (isFloat<T>()) smallest = leastKey(smallest, f32x4.splat(d));
    const size = abs(d);
    store<f32>(lane, load<f32>(lane) + size);
    store<f32>(lane, load<f32>(lane, 256) + d * d, 256);
    store<f32>(lane, load<f32>(lane, 512) + x * x, 512);
    store<f32>(lane, load<f32>(lane, 768) + y * y, 768);
    store<f32>(lane, load<f32>(lane, 1024) + x * y, 1024);
    if (size > most) most = size;
    if (size > threshold) changes++;
    if (x * y < 0) flips++;
    if (reinterpret<u32>(x) != reinterpret<u32>(y)) differs++;
  }
  if (isFloat<T>() && wasSmall(smallest)) return false;
  addLanes(lanes, 5, figures);
  store<f32>(figures, most, 20);
  store<i32>(figures, changes, 24);
  store<i32>(figures, flips, 28);
  store<i32>(figures, differs, 32);
  return true;
}

/** The same of any n elements of f32. */
function differ(a: usize, b: usize, n: i32, threshold: f32, delta: usize, figures: usize, scratch: usize): void {
  let most: f32 = 0;
  let changes = 0;
  let flips = 0;
  let differs = 0;
  for (let e: usize = 0; e < <usize>n << 2; e += 4) {
    const x = load<u32>(a + e);
    const y = load<u32>(b + e);
    const d = flushOne(reinterpret<f32>(y) - reinterpret<f32>(x));
    store<f32>(delta + e, d);
    const size = abs(d);
    if (size > most) most = size;
    if (size > threshold) changes++;
    if (x != y) differs++;
    if (((x ^ y) & SIGN) != 0 && (x & ~SIGN) != 0 && (y & ~SIGN) != 0) flips++;
  }
  const smallA = hasSmall(a, n);
  const smallB = hasSmall(b, n);
  absoluteSum(delta, n, figures, scratch);
  store<f32>(figures, dotBlock(delta, delta, n, hasSmall(delta, n), scratch), 4);
  store<f32>(figures, dotBlock(a, a, n, smallA, scratch), 8);
  store<f32>(figures, dotBlock(b, b, n, smallB, scratch), 12);
  store<f32>(figures, dotBlock(a, b, n, smallA || smallB, scratch), 16);
  store<f32>(figures, most, 20);
  store<i32>(figures, changes, 24);
  store<i32>(figures, flips, 28);
  store<i32>(figures, differs, 32);
}

/**
 * Nine words for every segment of at most 4096 columns of two versions [rows, cols] in their dtypes, and Δ = b − a where it has
 * an address. What is not finite is counted in the word at `status` for a, in the next for b. `slots`: three blocks of f32,
 * `scratch`: 2 KiB.
 */
export function difference(
  a: usize,
  aType: i32,
  b: usize,
  bType: i32,
  rows: i32,
  cols: i32,
  threshold: f32,
  delta: usize,
  sums: usize,
  status: usize,
  slots: usize,
  scratch: usize,
): void {
  const halves = aType == 2 && bType == 2;
  const aShift = <usize>(aType == 0 ? 2 : 1);
  const bShift = <usize>(bType == 0 ? 2 : 1);
  let out = sums;
  let p = a;
  let q = b;
  let d = delta;
  for (let row = 0; row < rows; row++) {
    for (let first = 0; first < cols; first += BLOCK) {
      const n = min(BLOCK, cols - first);
      let done = halves && allPlain<u16>(p, n) && allPlain<u16>(q, n) && differPlain<u16>(p, q, n, threshold, d, out, scratch);
      if (!done) {
        const x = slots;
        const y = slots + SLOT;
        addTo(status, decode(p, x, n, aType));
        addTo(status + 4, decode(q, y, n, bType));
        done = allPlain<f32>(x, n) && allPlain<f32>(y, n) && differPlain<f32>(x, y, n, threshold, d, out, scratch);
        if (!done) differ(x, y, n, threshold, d ? d : slots + 2 * SLOT, out, scratch);
      }
      out += FIGURES;
      p += <usize>n << aShift;
      q += <usize>n << bShift;
      if (d) d += <usize>n << 2;
    }
  }
}

// Exact counts of what a merge did to a tile (shaders/statistics/merge-counts.wgsl). Sixty-four elements are bits of a word; a block
// without small values (lanes.ts) has no subnormals on the way, so that nothing is flushed there.

/** Words of a model in the scratch: its changes other than 0, its ballots above and below zero. */
const WORDS: usize = 24;

/** Eight f32 in a dtype of 16 bits. Those of a base that is stored as BF16 only lose their empty halves. */
@inline
function halves(at: usize, bf16: bool): v128 {
  const x = v128.load(at);
  const y = v128.load(at, 16);
  if (!bf16) return i16x8.narrow_i32x4_u(narrowF16x4(canonical(x)), narrowF16x4(canonical(y)));
  const rest = v128.and(v128.or(x, y), i32x4.splat(0xffff));
  if (v128.any_true(v128.or(rest, v128.or(f32x4.ne(x, x), f32x4.ne(y, y))))) {
    return i16x8.narrow_i32x4_u(narrowBf16x4(canonical(x)), narrowBf16x4(canonical(y)));
  }
  return v128.shuffle<u16>(x, y, 1, 3, 5, 7, 9, 11, 13, 15);
}

/** Which of eight elements hold the base's value, +0 and −0 being one. */
@inline
function sameHalves(base: usize, packed: usize, bf16: bool): v128 {
  const own = halves(base, bf16);
  const stored = v128.load(packed);
  const zero = i16x8.eq(v128.and(v128.or(own, stored), i16x8.splat(0x7fff)), i16x8.splat(0));
  return v128.or(i16x8.eq(own, stored), zero);
}

@inline
function sameWords(base: usize, packed: usize): v128 {
  const own = canonical(v128.load(base));
  const stored = v128.load(packed);
  const zero = i32x4.eq(v128.and(v128.or(own, stored), i32x4.splat(0x7fffffff)), i32x4.splat(0));
  return v128.or(i32x4.eq(own, stored), zero);
}

/** Which of sixteen elements hold the base's value in the output dtype, as bits. */
@inline
function atBase(base: usize, packed: usize, dtype: i32): u64 {
  if (dtype == 0) {
    return <u64>bits16(
      sameWords(base, packed),
      sameWords(base + 16, packed + 16),
      sameWords(base + 32, packed + 32),
      sameWords(base + 48, packed + 48),
    );
  }
  const bf16 = dtype == 2;
  const low = sameHalves(base, packed, bf16);
  const high = sameHalves(base + 32, packed + 16, bf16);
  return <u64>(<u32>i8x16.bitmask(i8x16.narrow_i16x8_s(low, high)));
}

@inline
function mark(word: usize, bits: u32, k: i32): void {
  store<u64>(word, load<u64>(word) | ((<u64>bits) << k));
}

@inline
function voteOf(ballot: v128, signs: bool): v128 {
  if (!signs) return ballot;
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  return f32x4.sub(v128.and(f32x4.gt(ballot, zero), one), v128.and(f32x4.lt(ballot, zero), one));
}

/**
 * Ballots of sixteen elements at `first`, marked in the models' words from bit k on; returns who is elected there, + being a
 * set bit, in the lower half, and who is NaN above. `weighted`: the ballots are the changes that are summed.
 */
@inline
function elect(
  first: usize,
  stride: usize,
  models: usize,
  coefficients: usize,
  weighted: bool,
  signs: bool,
  least: v128,
  k: i32,
  scratch: usize,
  small: bool,
): u64 {
  const zero = f32x4.splat(0);
  let votes0 = zero;
  let votes1 = zero;
  let votes2 = zero;
  let votes3 = zero;
  let total0 = zero;
  let total1 = zero;
  let total2 = zero;
  let total3 = zero;
  let tau = first;
  let word = scratch;
  for (let i: usize = 0; i < models; i++) {
    const scale = v128.load32_splat(coefficients + ((models + i) << 2));
    const weight = v128.load32_splat(coefficients + (i << 2));
    tau += stride;
    let s0 = rounded(f32x4.mul(v128.load(tau), scale), small);
    let s1 = rounded(f32x4.mul(v128.load(tau, 16), scale), small);
    let s2 = rounded(f32x4.mul(v128.load(tau, 32), scale), small);
    let s3 = rounded(f32x4.mul(v128.load(tau, 48), scale), small);
    const d0 = rounded(f32x4.mul(s0, weight), small);
    const d1 = rounded(f32x4.mul(s1, weight), small);
    const d2 = rounded(f32x4.mul(s2, weight), small);
    const d3 = rounded(f32x4.mul(s3, weight), small);
    if (weighted) {
      s0 = d0;
      s1 = d1;
      s2 = d2;
      s3 = d3;
    } else {
      total0 = rounded(f32x4.add(total0, d0), small);
      total1 = rounded(f32x4.add(total1, d1), small);
      total2 = rounded(f32x4.add(total2, d2), small);
      total3 = rounded(f32x4.add(total3, d3), small);
    }
    mark(word + 8, bits16(f32x4.gt(s0, zero), f32x4.gt(s1, zero), f32x4.gt(s2, zero), f32x4.gt(s3, zero)), k);
    mark(word + 16, bits16(f32x4.lt(s0, zero), f32x4.lt(s1, zero), f32x4.lt(s2, zero), f32x4.lt(s3, zero)), k);
    votes0 = rounded(f32x4.add(votes0, voteOf(s0, signs)), small);
    votes1 = rounded(f32x4.add(votes1, voteOf(s1, signs)), small);
    votes2 = rounded(f32x4.add(votes2, voteOf(s2, signs)), small);
    votes3 = rounded(f32x4.add(votes3, voteOf(s3, signs)), small);
    word += WORDS;
  }
  if (weighted) {
    total0 = votes0;
    total1 = votes1;
    total2 = votes2;
    total3 = votes3;
  }
  const plus = bits16(f32x4.ge(votes0, least), f32x4.ge(votes1, least), f32x4.ge(votes2, least), f32x4.ge(votes3, least));
  const special = bits16(
    f32x4.ne(total0, total0),
    f32x4.ne(total1, total1),
    f32x4.ne(total2, total2),
    f32x4.ne(total3, total3),
  );
  return <u64>plus | ((<u64>special) << 32);
}

/** A block, or what there is of the last one. */
@inline
function countBlock(
  values: usize,
  stride: usize,
  models: usize,
  elements: i32,
  coefficients: usize,
  elects: bool,
  weighted: bool,
  signs: bool,
  least: v128,
  packed: usize,
  dtype: i32,
  counts: usize,
  scratch: usize,
  small: bool,
): void {
  const zero = f32x4.splat(0);
  const width: usize = dtype == 0 ? 2 : 1;
  for (let begin = 0; begin < elements; begin += 64) {
    const size = min(64, elements - begin);
    const inside: u64 = size == 64 ? u64.MAX_VALUE : ((<u64>1) << size) - 1;
    let still: u64 = 0;
    let plus: u64 = 0;
    let special: u64 = 0;
    memory.fill(scratch, 0, models * WORDS);
    for (let k = 0; k < size; k += 16) {
      const e = <usize>(begin + k);
      const first = values + (e << 2);
      still |= atBase(first, packed + (e << width), dtype) << k;
      for (let i: usize = 0, tau = first + stride; i < models; i++, tau += stride) {
        const some = bits16(
          f32x4.ne(v128.load(tau), zero),
          f32x4.ne(v128.load(tau, 16), zero),
          f32x4.ne(v128.load(tau, 32), zero),
          f32x4.ne(v128.load(tau, 48), zero),
        );
        mark(scratch + i * WORDS, some, k);
      }
      if (!elects) continue;
      const elected = elect(first, stride, models, coefficients, weighted, signs, least, k, scratch, small);
      plus |= (elected & 0xffff) << k;
      special |= (elected >> 32) << k;
    }
    addTo(counts, <i32>popcnt(still & inside));
    // NaN comes through whoever is elected
    const decided = inside & ~special;
    let pair = counts + ((1 + models) << 2);
    for (let i: usize = 0; i < models; i++) {
      const word = scratch + i * WORDS;
      const own = load<u64>(word) & inside;
      const against = (load<u64>(word, 16) & plus) | (load<u64>(word, 8) & ~plus);
      addTo(counts + ((1 + i) << 2), <i32>popcnt(against & decided));
      for (let j = i; j < models; j++) {
        addTo(pair, <i32>popcnt(own & load<u64>(scratch + j * WORDS)));
        pair += 4;
      }
    }
  }
}

/**
 * Adds to `counts` what `elements` at `values` and `packed` come to; `values` are `stride` bytes apart, a multiple of 64.
 * `extreme`: a coefficient is small. `scratch`: 24 bytes a model.
 */
export function mergeCounts(
  values: usize,
  stride: usize,
  models: i32,
  elements: i32,
  coefficients: usize,
  election: i32,
  zeroNegative: bool,
  extreme: bool,
  packed: usize,
  dtype: i32,
  counts: usize,
  scratch: usize,
): void {
  const n = <usize>models;
  // the least vote that elects +: 0, or the smallest above it
  const least = i32x4.splat(zeroNegative ? 1 : 0);
  const width: usize = dtype == 0 ? 2 : 1;
  for (let begin = 0; begin < elements; begin += BLOCK) {
    const size = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    const to = packed + (<usize>begin << width);
    let small = election != 0 && extreme;
    for (let i: usize = 1; election != 0 && i <= n && !small; i++) small = hasSmall(at + i * stride, size);
    if (election == 0) {
      countBlock(at, stride, n, size, coefficients, false, false, false, least, to, dtype, counts, scratch, false);
    } else if (small) {
      countBlock(at, stride, n, size, coefficients, true, election == 1, election == 3, least, to, dtype, counts, scratch, true);
    } else if (election == 1) {
      countBlock(at, stride, n, size, coefficients, true, true, false, least, to, dtype, counts, scratch, false);
    } else {
      countBlock(at, stride, n, size, coefficients, true, false, election == 3, least, to, dtype, counts, scratch, false);
    }
  }
}
