import { bits16, BLOCK, canonical, dotBlock, flush, flushOne, hasSmall, lanesSum, narrowBf16x4, narrowF16x4, rounded, total } from './lib/lanes';

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

// Two versions of a tile in one pass: shaders/statistics/difference.wgsl, to the bit.

/** Bytes of one segment's figures. */
const FIGURES: usize = 36;
const SIGN: u32 = 0x80000000;

/** Δ of n elements of one segment, its largest size, and the counts of changed, flipped and different ones. */
function differ(a: usize, b: usize, n: i32, threshold: f32, delta: usize, figures: usize): void {
  const least = f32x4.splat(threshold);
  const sign = i32x4.splat(SIGN);
  const zero = i32x4.splat(0);
  let largest = zero;
  let changed = zero;
  let flipped = zero;
  let different = zero;
  let e: usize = 0;
  const whole = <usize>(n & ~3) << 2;
  for (; e < whole; e += 16) {
    const x = v128.load(a + e);
    const y = v128.load(b + e);
    const d = flush(f32x4.sub(y, x));
    v128.store(delta + e, d);
    const size = f32x4.abs(d);
    largest = f32x4.pmax(largest, size);
    changed = i32x4.sub(changed, f32x4.gt(size, least));
    different = i32x4.sub(different, i32x4.ne(x, y));
    const opposite = i32x4.shr_s(v128.xor(x, y), 31);
    const one = i32x4.ne(v128.andnot(x, sign), zero);
    const both = v128.and(one, i32x4.ne(v128.andnot(y, sign), zero));
    flipped = i32x4.sub(flipped, v128.and(opposite, both));
  }
  let most: f32 = max(
    max(f32x4.extract_lane(largest, 0), f32x4.extract_lane(largest, 1)),
    max(f32x4.extract_lane(largest, 2), f32x4.extract_lane(largest, 3)),
  );
  let changes = lanesSum(changed);
  let flips = lanesSum(flipped);
  let differs = lanesSum(different);
  for (; e < <usize>n << 2; e += 4) {
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
  store<f32>(figures, most, 20);
  store<i32>(figures, changes, 24);
  store<i32>(figures, flips, 28);
  store<i32>(figures, differs, 32);
}

/** Δ = b − a of [rows, cols], and nine words for every segment of at most 4096 columns. `scratch`: 256 bytes. */
export function difference(
  a: usize,
  b: usize,
  rows: i32,
  cols: i32,
  threshold: f32,
  delta: usize,
  sums: usize,
  scratch: usize,
): void {
  let out = sums;
  let at: usize = 0;
  for (let row = 0; row < rows; row++) {
    for (let first = 0; first < cols; first += BLOCK) {
      const n = min(BLOCK, cols - first);
      const p = a + at;
      const q = b + at;
      const d = delta + at;
      differ(p, q, n, threshold, d, out);
      const smallP = hasSmall(p, n);
      const smallQ = hasSmall(q, n);
      absoluteSum(d, n, out, scratch);
      store<f32>(out, dotBlock(d, d, n, hasSmall(d, n), scratch), 4);
      store<f32>(out, dotBlock(p, p, n, smallP, scratch), 8);
      store<f32>(out, dotBlock(q, q, n, smallQ, scratch), 12);
      store<f32>(out, dotBlock(p, q, n, smallP || smallQ, scratch), 16);
      out += FIGURES;
      at += <usize>n << 2;
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

/** Adds to the word at `at`. */
@inline
function add(at: usize, count: u64): void {
  store<u32>(at, load<u32>(at) + <u32>count);
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
    add(counts, popcnt(still & inside));
    // NaN comes through whoever is elected
    const decided = inside & ~special;
    let pair = counts + ((1 + models) << 2);
    for (let i: usize = 0; i < models; i++) {
      const word = scratch + i * WORDS;
      const own = load<u64>(word) & inside;
      const against = (load<u64>(word, 16) & plus) | (load<u64>(word, 8) & ~plus);
      add(counts + ((1 + i) << 2), popcnt(against & decided));
      for (let j = i; j < models; j++) {
        add(pair, popcnt(own & load<u64>(scratch + j * WORDS)));
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
