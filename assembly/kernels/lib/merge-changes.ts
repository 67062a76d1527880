import { lanesSum, MAGNITUDE } from './lanes';
import { addLanes, addTo, four, leastKey, modelsOf, packed4, putBaseProducts, putProducts, putSum, ROW, ROWS, samePacked, wasSmall } from './stored';

// A tile of changes, as they are stored, on their way to the output: decode, subtract, select, measure, combine, count and
// encode in one pass, bit for bit as the kernels of those names do it one after another.

/** How a block is selected. */
export const ALL: i32 = 0;
export const OUTER: i32 = 1;
export const THRESHOLDS: i32 = 2;
export const MASKS: i32 = 3;

/** Counts of a block, for `addCounts`: at the base, lost of each of four models, shared by each pair, models in conflict. */
export const LOST: usize = 4;
export const SHARED: usize = 20;
export const FOUND: usize = 60;
const COUNTS: usize = 64;

/** Those of four elements that a mask has a bit for, from bit `shift` of a byte on; the rest cleared. */
@inline
export function masked(x: v128, mask: usize, shift: i32): v128 {
  const lanes = i32x4(1, 2, 4, 8);
  return v128.and(x, i32x4.eq(v128.and(i32x4.splat(<i32>load<u8>(mask) >> shift), lanes), lanes));
}

/** Those with keys above the first word at `bounds`. */
@inline
function inside(x: v128, bounds: usize): v128 {
  return v128.and(x, i32x4.gt_s(v128.and(x, i32x4.splat(MAGNITUDE)), v128.load32_splat(bounds)));
}

/** Those with keys above the first word at `bounds` and not above the second. */
@inline
function bounded(x: v128, bounds: usize): v128 {
  const key = v128.and(x, i32x4.splat(MAGNITUDE));
  const stay = v128.andnot(i32x4.gt_s(key, v128.load32_splat(bounds)), i32x4.gt_s(key, v128.load32_splat(bounds, 4)));
  return v128.and(x, stay);
}

/**
 * Sums of a plain block to `sums` and its squared change to `stats`, its counts to `counts`; false where the block has to be
 * done another way: a change is small. Models as in `modelsOf`; `places`: their addresses, the base’s first. `bounds`: of every model, the keys above which it is kept
 * and above which it is not any more; `masks` are `pitch` bytes apart.
 */
function mergePlain<B, T, M>(
  places: usize,
  how: i32,
  bounds: usize,
  masks: usize,
  pitch: usize,
  coefficients: usize,
  elects: bool,
  zeroNegative: bool,
  lambda: f32,
  packed: usize,
  dtype: i32,
  sums: usize,
  stats: usize,
  wrong: usize,
  counts: usize,
  lanes: usize,
): bool {
  const models = modelsOf<M>();
  const v0 = load<usize>(places);
  const v1 = load<usize>(places, 4);
  const v2 = load<usize>(places, 8);
  const v3 = load<usize>(places, 12);
  const v4 = load<usize>(places, 16);
  const zero = f32x4.splat(0);
  const sign = i32x4.splat(0x80000000);
  const vote = i32x4.splat(zeroNegative ? 1 : 0);
  const magnitude = i32x4.splat(dtype == 0 ? 0x7fffffff : 0x7fff);
  const lambdas = f32x4.splat(lambda);
  const scales = coefficients + (models << 2);
  const reciprocals = coefficients + (models << 3);
  const fixed = v128.load32_splat(reciprocals);
  const is1 = isVoter(coefficients, models, 0);
  const is2 = isVoter(coefficients, models, 1);
  const is3 = isVoter(coefficients, models, 2);
  const is4 = isVoter(coefficients, models, 3);
  let least = i32x4.splat(-1);
  let failed = zero;
  memory.fill(counts, 0, COUNTS);
  for (let column: usize = 0; column < ROW; column += 4) {
    let s00 = zero;
    let s01 = zero;
    let s02 = zero;
    let s03 = zero;
    let s04 = zero;
    let s11 = zero;
    let s12 = zero;
    let s13 = zero;
    let s14 = zero;
    let s22 = zero;
    let s23 = zero;
    let s24 = zero;
    let s33 = zero;
    let s34 = zero;
    let s44 = zero;
    let moved = zero;
    let from = v0 + column * sizeof<B>();
    let at = column * sizeof<T>();
    let to = packed + (column << (dtype == 0 ? 2 : 1));
    let mask = masks + (column >> 3);
    const shift = <i32>column & 4;
    for (let row = 0; row < ROWS; row += 16) {
      // sixteen rows of four lanes are the bits of a word: what is not 0, what votes against the elected, what is as before
      let some1: u64 = 0;
      let some2: u64 = 0;
      let some3: u64 = 0;
      let some4: u64 = 0;
      let against1: u64 = 0;
      let against2: u64 = 0;
      let against3: u64 = 0;
      let against4: u64 = 0;
      let still: u64 = 0;
      for (let k: u64 = 0; k < 64; k += 4) {
        const base = four<B>(from);
        let a = tau<T>(v1 + at, base);
        let b = models > 1 ? tau<T>(v2 + at, base) : zero;
        let c = models > 2 ? tau<T>(v3 + at, base) : zero;
        let d = models > 3 ? tau<T>(v4 + at, base) : zero;
        if (how == OUTER) {
          a = inside(a, bounds);
          if (models > 1) b = inside(b, bounds + 8);
          if (models > 2) c = inside(c, bounds + 16);
          if (models > 3) d = inside(d, bounds + 24);
        } else if (how == THRESHOLDS) {
          a = bounded(a, bounds);
          if (models > 1) b = bounded(b, bounds + 8);
          if (models > 2) c = bounded(c, bounds + 16);
          if (models > 3) d = bounded(d, bounds + 24);
        } else if (how != ALL) {
          a = masked(a, mask, shift);
          if (models > 1) b = masked(b, mask + pitch, shift);
          if (models > 2) c = masked(c, mask + 2 * pitch, shift);
          if (models > 3) d = masked(d, mask + 3 * pitch, shift);
          mask += ROW >> 3;
        }
        // products of what stays
        s00 = f32x4.add(s00, f32x4.mul(base, base));
        s01 = f32x4.add(s01, f32x4.mul(base, a));
        s11 = f32x4.add(s11, f32x4.mul(a, a));
        some1 |= bitsOf(f32x4.ne(a, zero)) << k;
        if (models > 1) {
          s02 = f32x4.add(s02, f32x4.mul(base, b));
          s12 = f32x4.add(s12, f32x4.mul(a, b));
          s22 = f32x4.add(s22, f32x4.mul(b, b));
          some2 |= bitsOf(f32x4.ne(b, zero)) << k;
        }
        if (models > 2) {
          s03 = f32x4.add(s03, f32x4.mul(base, c));
          s13 = f32x4.add(s13, f32x4.mul(a, c));
          s23 = f32x4.add(s23, f32x4.mul(b, c));
          s33 = f32x4.add(s33, f32x4.mul(c, c));
          some3 |= bitsOf(f32x4.ne(c, zero)) << k;
        }
        if (models > 3) {
          s04 = f32x4.add(s04, f32x4.mul(base, d));
          s14 = f32x4.add(s14, f32x4.mul(a, d));
          s24 = f32x4.add(s24, f32x4.mul(b, d));
          s34 = f32x4.add(s34, f32x4.mul(c, d));
          s44 = f32x4.add(s44, f32x4.mul(d, d));
          some4 |= bitsOf(f32x4.ne(d, zero)) << k;
        }
        // what each brings
        a = f32x4.mul(f32x4.mul(a, v128.load32_splat(scales)), v128.load32_splat(coefficients));
        let mixed = a;
        if (models > 1) {
          b = f32x4.mul(f32x4.mul(b, v128.load32_splat(scales, 4)), v128.load32_splat(coefficients, 4));
          mixed = f32x4.add(mixed, b);
        }
        if (models > 2) {
          c = f32x4.mul(f32x4.mul(c, v128.load32_splat(scales, 8)), v128.load32_splat(coefficients, 8));
          mixed = f32x4.add(mixed, c);
        }
        if (models > 3) {
          d = f32x4.mul(f32x4.mul(d, v128.load32_splat(scales, 12)), v128.load32_splat(coefficients, 12));
          mixed = f32x4.add(mixed, d);
        }
        let reciprocal = fixed;
        if (elects) {
          // ballots for the elected sign are positive from here on; agreed: those who agree, and the bytes of their reciprocal
          const flip = v128.andnot(sign, f32x4.ge(mixed, vote));
          const ballot1 = v128.xor(a, flip);
          const for1 = f32x4.gt(ballot1, zero);
          against1 |= bitsOf(f32x4.lt(ballot1, zero)) << k;
          mixed = v128.and(a, for1);
          let set = v128.or(v128.and(for1, i32x4.splat(0x04040404)), i32x4.splat(0x03020100));
          if (models > 1) {
            const ballot2 = v128.xor(b, flip);
            const for2 = f32x4.gt(ballot2, zero);
            against2 |= bitsOf(f32x4.lt(ballot2, zero)) << k;
            mixed = f32x4.add(mixed, v128.and(b, for2));
            set = v128.or(set, v128.and(for2, i32x4.splat(0x08080808)));
          }
          if (models > 2) {
            const ballot3 = v128.xor(c, flip);
            const for3 = f32x4.gt(ballot3, zero);
            against3 |= bitsOf(f32x4.lt(ballot3, zero)) << k;
            mixed = f32x4.add(mixed, v128.and(c, for3));
            set = v128.or(set, v128.and(for3, i32x4.splat(0x10101010)));
          }
          if (models > 3) {
            const ballot4 = v128.xor(d, flip);
            const for4 = f32x4.gt(ballot4, zero);
            against4 |= bitsOf(f32x4.lt(ballot4, zero)) << k;
            mixed = f32x4.add(mixed, v128.and(d, for4));
            set = v128.or(set, v128.and(for4, i32x4.splat(0x20202020)));
          }
          reciprocal = i8x16.swizzle(v128.load(reciprocals), set);
          if (models > 2) {
            set = i8x16.sub(set, i8x16.splat(16));
            reciprocal = v128.or(reciprocal, i8x16.swizzle(v128.load(reciprocals, 16), set));
          }
          if (models > 3) {
            set = i8x16.sub(set, i8x16.splat(16));
            reciprocal = v128.or(reciprocal, i8x16.swizzle(v128.load(reciprocals, 32), set));
            set = i8x16.sub(set, i8x16.splat(16));
            reciprocal = v128.or(reciprocal, i8x16.swizzle(v128.load(reciprocals, 48), set));
          }
        } else {
          against1 |= bitsOf(f32x4.lt(a, zero)) << k;
          if (models > 1) against2 |= bitsOf(f32x4.lt(b, zero)) << k;
          if (models > 2) against3 |= bitsOf(f32x4.lt(c, zero)) << k;
          if (models > 3) against4 |= bitsOf(f32x4.lt(d, zero)) << k;
        }
        const delta = f32x4.mul(f32x4.mul(mixed, reciprocal), lambdas);
        least = leastKey(least, delta);
        moved = f32x4.add(moved, f32x4.mul(delta, delta));
        // a change of zero is added as −0, which leaves every base its bits
        const out = f32x4.add(base, v128.or(delta, v128.and(f32x4.eq(delta, zero), sign)));
        const bits = packed4(out, dtype);
        // a base in the output dtype is the same with a change of zero alone, then to the bit
        const same = isFloat<B>() ? samePacked(bits, packed4(base, dtype), magnitude) : i32x4.eq(bits, i32x4.shr_u(base, 16));
        still |= bitsOf(same) << k;
        if (dtype == 0) v128.store(to, bits);
        else v128.store64_lane(to, i16x8.narrow_i32x4_u(bits, bits), 0);
        if (dtype == 1) failed = i32x4.sub(failed, i32x4.eq(v128.and(bits, i32x4.splat(0x7c00)), i32x4.splat(0x7c00)));
        from += ROW * sizeof<B>();
        at += ROW * sizeof<T>();
        to += ROW << (dtype == 0 ? 2 : 1);
      }
      addTo(counts, <i32>popcnt(still));
      let up = some1 & ~against1 & is1;
      let down = against1;
      addTo(counts + LOST, <i32>popcnt(against1));
      addTo(counts + SHARED, <i32>popcnt(some1));
      if (models > 1) {
        up |= some2 & ~against2 & is2;
        down |= against2;
        addTo(counts + LOST + 4, <i32>popcnt(against2));
        addTo(counts + SHARED + 4, <i32>popcnt(some1 & some2));
        addTo(counts + SHARED + (models << 2), <i32>popcnt(some2));
      }
      if (models > 2) {
        up |= some3 & ~against3 & is3;
        down |= against3;
        addTo(counts + LOST + 8, <i32>popcnt(against3));
        addTo(counts + SHARED + 8, <i32>popcnt(some1 & some3));
        addTo(counts + SHARED + ((models + 1) << 2), <i32>popcnt(some2 & some3));
        addTo(counts + SHARED + ((2 * models - 1) << 2), <i32>popcnt(some3));
      }
      if (models > 3) {
        up |= some4 & ~against4 & is4;
        down |= against4;
        addTo(counts + LOST + 12, <i32>popcnt(against4));
        addTo(counts + SHARED + 12, <i32>popcnt(some1 & some4));
        addTo(counts + SHARED + 24, <i32>popcnt(some2 & some4));
        addTo(counts + SHARED + 32, <i32>popcnt(some3 & some4));
        addTo(counts + SHARED + 36, <i32>popcnt(some4));
      }
      addTo(counts + FOUND, <i32>popcnt(up & down));
    }
    let lane = putBaseProducts<M>(lanes + (column << 2), s00, s01, s02, s03, s04);
    lane = putProducts<M>(lane, s11, s12, s13, s14, s22, s23, s24, s33, s34, s44);
    putSum(lane, moved);
  }
  if (wasSmall(least)) return false;
  const pairs = ((models + 1) * (models + 2)) / 2;
  addLanes(lanes, pairs, sums);
  addLanes(lanes + ((<usize>pairs * ROW) << 2), 1, stats + 4);
  if (dtype == 1) addTo(wrong, lanesSum(failed));
  return true;
}

/** The lanes of a mask as bits. */
@inline
function bitsOf(lanes: v128): u64 {
  return <u64>(<u32>i32x4.bitmask(lanes));
}

/** All bits where a model's changes come to something, as no coefficient is 0; else none. */
@inline
function isVoter(coefficients: usize, models: i32, i: i32): u64 {
  if (i >= models) return 0;
  return load<f32>(coefficients + (i << 2)) * load<f32>(coefficients + ((models + i) << 2)) != 0 ? u64.MAX_VALUE : 0;
}

/** A change, from the model as it is stored, or as it lies in a slot. */
@inline
export function tau<T>(at: usize, base: v128): v128 {
  return isFloat<T>() ? four<T>(at) : f32x4.sub(four<T>(at), base);
}

/** `mergePlain` for this number of models. */
export function mergeUsual<B, T>(
  models: i32,
  places: usize,
  how: i32,
  bounds: usize,
  masks: usize,
  pitch: usize,
  coefficients: usize,
  elects: bool,
  zeroNegative: bool,
  lambda: f32,
  packed: usize,
  dtype: i32,
  sums: usize,
  stats: usize,
  wrong: usize,
  counts: usize,
  lanes: usize,
): bool {
  if (models == 1) {
    return mergePlain<B, T, u8>(places, how, bounds, masks, pitch, coefficients, elects, zeroNegative, lambda, packed, dtype, sums, stats, wrong, counts, lanes);
  }
  if (models == 2) {
    return mergePlain<B, T, u16>(places, how, bounds, masks, pitch, coefficients, elects, zeroNegative, lambda, packed, dtype, sums, stats, wrong, counts, lanes);
  }
  if (models == 3) {
    return mergePlain<B, T, u32>(places, how, bounds, masks, pitch, coefficients, elects, zeroNegative, lambda, packed, dtype, sums, stats, wrong, counts, lanes);
  }
  return mergePlain<B, T, u64>(places, how, bounds, masks, pitch, coefficients, elects, zeroNegative, lambda, packed, dtype, sums, stats, wrong, counts, lanes);
}
