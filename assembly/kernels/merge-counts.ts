// Exact counts of what a merge did to a tile (shaders/merge-counts.wgsl).
import { canonical, narrowBf16x4, narrowF16x4 } from './lib/half';
import { flush } from './lib/lanes';

/** Which of four elements hold the base's value in the output dtype, as bits. */
@inline
function atBase(base: usize, packed: usize, e: i32, dtype: i32): i32 {
  const bits = canonical(v128.load(base + (<usize>e << 2)));
  let rounded = bits;
  let stored: v128;
  let magnitude = 0x7fffffff;
  if (dtype == 0) stored = v128.load(packed + (<usize>e << 2));
  else {
    magnitude = 0x7fff;
    rounded = dtype == 2 ? narrowBf16x4(bits) : narrowF16x4(bits);
    stored = i32x4.extend_low_i16x8_u(v128.load64_zero(packed + (<usize>e << 1)));
  }
  const zero = i32x4.eq(v128.and(v128.or(rounded, stored), i32x4.splat(magnitude)), i32x4.splat(0));
  return i32x4.bitmask(v128.or(i32x4.eq(rounded, stored), zero));
}

/** Adds to the word at `at`. */
@inline
function add(at: usize, count: u64): void {
  store<u32>(at, load<u32>(at) + <u32>count);
}

/**
 * Adds to `counts` what `elements` at `values` and `packed` come to; `values` are `stride` bytes apart. `scratch`: 16 bytes
 * a model. Sixty-four elements are bits of a word a model.
 */
export function mergeCounts(
  values: usize,
  stride: usize,
  models: i32,
  elements: i32,
  coefficients: usize,
  election: i32,
  zeroNegative: bool,
  packed: usize,
  dtype: i32,
  counts: usize,
  scratch: usize,
): void {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const nobody = i32x4.splat(0);
  const sign = i32x4.splat(0x7fffffff);
  const zeroPlus = zeroNegative ? nobody : i32x4.splat(-1);
  const n = <usize>models;
  const lost = scratch + (n << 3);
  for (let begin = 0; begin < elements; begin += 64) {
    const size = min(64, elements - begin);
    const inside: u64 = size == 64 ? u64.MAX_VALUE : ((<u64>1) << size) - 1;
    let still: u64 = 0;
    for (let i: usize = 0; i < 2 * n; i++) store<u64>(scratch + (i << 3), 0);
    for (let k = 0; k < size; k += 4) {
      const e = begin + k;
      const first = values + (<usize>e << 2);
      still |= (<u64>atBase(values, packed, e, dtype)) << k;
      let total = zero;
      let votes = zero;
      let positive = nobody;
      let negative = nobody;
      for (let i: usize = 0; i < n; i++) {
        const tau = v128.load(first + (i + 1) * stride);
        const some = i32x4.bitmask(i32x4.ne(v128.and(tau, sign), nobody));
        const word = scratch + (i << 3);
        store<u64>(word, load<u64>(word) | ((<u64>some) << k));
        if (election == 0) continue;
        const s = flush(f32x4.mul(tau, v128.load32_splat(coefficients + ((n + i) << 2))));
        const d = flush(f32x4.mul(s, v128.load32_splat(coefficients + (i << 2))));
        const ballot = election >= 2 ? s : d;
        const up = f32x4.gt(ballot, zero);
        const down = f32x4.lt(ballot, zero);
        const bit = i32x4.splat(1 << <i32>i);
        positive = v128.or(positive, v128.and(up, bit));
        negative = v128.or(negative, v128.and(down, bit));
        total = flush(f32x4.add(total, d));
        const vote = election == 3 ? f32x4.sub(v128.and(up, one), v128.and(down, one)) : ballot;
        votes = flush(f32x4.add(votes, vote));
      }
      if (election == 0) continue;
      const plus = v128.or(f32x4.gt(votes, zero), v128.and(f32x4.eq(votes, zero), zeroPlus));
      // NaN comes through whoever is elected
      const against = v128.andnot(v128.bitselect(negative, positive, plus), f32x4.ne(total, total));
      if (!v128.any_true(against)) continue;
      for (let i: usize = 0; i < n; i++) {
        const bit = i32x4.splat(1 << <i32>i);
        const word = lost + (i << 3);
        store<u64>(word, load<u64>(word) | ((<u64>i32x4.bitmask(i32x4.eq(v128.and(against, bit), bit))) << k));
      }
    }
    add(counts, popcnt(still & inside));
    let pair = counts + ((1 + n) << 2);
    for (let i: usize = 0; i < n; i++) {
      const own = load<u64>(scratch + (i << 3)) & inside;
      add(counts + ((1 + i) << 2), popcnt(load<u64>(lost + (i << 3)) & inside));
      for (let j = i; j < n; j++) {
        add(pair, popcnt(own & load<u64>(scratch + (j << 3))));
        pair += 4;
      }
    }
  }
}
