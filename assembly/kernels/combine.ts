import { bits16, BLOCK, dotBlock, hasSmall, lanesSum, MAGNITUDE, rounded } from './lib/lanes';

export { mergeChanges } from './lib/stored-changes';

// The elected sum of task vectors: shaders/combine/combine.wgsl.

// Where the scratch of a block lies: 256 bytes of lane sums, then a block each of
const DELTA: usize = 256;
const CHANGES: usize = 256 + (<usize>BLOCK << 2);

/** More models have no table of reciprocals: 2^16 of them are 256 KiB. */
const MOST_IN_TABLE: i32 = 16;

/** 1/x as in shaders/combine/combine.wgsl. */
@inline
function inverse(x: v128, small: bool): v128 {
  const size = f32x4.abs(x);
  let r = i32x4.sub(i32x4.splat(0x7ef311c3), size);
  for (let k = 0; k < 4; k++) {
    r = rounded(f32x4.mul(r, rounded(f32x4.sub(f32x4.splat(2), rounded(f32x4.mul(size, r), small)), small)), small);
  }
  return v128.or(r, v128.and(x, i32x4.splat(0x80000000)));
}

/** One block; `small` and `values` (votes without weights) are known when this is compiled. */
@inline
function combineBlock(
  at: usize,
  stride: usize,
  models: i32,
  n: i32,
  coefficients: usize,
  election: i32,
  zeroNegative: bool,
  lambda: f32,
  out: usize,
  stats: usize,
  scratch: usize,
  small: bool,
): void {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const reciprocals = coefficients + (<usize>models << 3);
  const fixed = v128.load32_splat(reciprocals);
  const scales = coefficients + (<usize>models << 2);
  const changes = scratch + CHANGES;
  const lambdas = f32x4.splat(lambda);
  const zeroPlus = zeroNegative ? i32x4.splat(0) : i32x4.splat(-1);
  let conflicts = i32x4.splat(0);
  let above = conflicts;
  let below = conflicts;
  for (let e = 0; e < n; e += 4) {
    const p = at + (<usize>e << 2);
    let total = zero;
    let ballots = zero;
    let positive = zero;
    let negative = zero;
    let v = p + stride;
    for (let i: usize = 0; i < <usize>models; i++) {
      const s = rounded(f32x4.mul(v128.load(v), v128.load32_splat(scales + (i << 2))), small);
      const d = rounded(f32x4.mul(s, v128.load32_splat(coefficients + (i << 2))), small);
      const ballot = election >= 2 ? s : d;
      const bit = i32x4.splat(1 << <i32>i);
      const up = f32x4.gt(ballot, zero);
      const down = f32x4.lt(ballot, zero);
      positive = v128.or(positive, v128.and(up, bit));
      negative = v128.or(negative, v128.and(down, bit));
      total = rounded(f32x4.add(total, d), small);
      if (election >= 2) {
        const vote =
          election == 3 ? f32x4.sub(v128.and(up, one), v128.and(down, one)) : ballot;
        ballots = rounded(f32x4.add(ballots, vote), small);
      }
      v128.store(changes + (i << 4), d);
      v += stride;
    }
    const votes = election >= 2 ? ballots : total;
    const nobody = i32x4.splat(0);
    const plus = v128.or(f32x4.gt(votes, zero), v128.and(f32x4.eq(votes, zero), zeroPlus));
    let found = v128.andnot(
      v128.not(i32x4.eq(positive, nobody)),
      i32x4.eq(negative, nobody),
    );
    let up = f32x4.gt(votes, zero);
    let down = f32x4.lt(votes, zero);
    if (e + 4 > n) {
      // the last vector reaches beyond the block's end
      const inside = i32x4.lt_s(
        i32x4(0, 1, 2, 3),
        i32x4.splat(n - e),
      );
      found = v128.and(found, inside);
      up = v128.and(up, inside);
      down = v128.and(down, inside);
    }
    conflicts = i32x4.sub(conflicts, found);
    above = i32x4.sub(above, up);
    below = i32x4.sub(below, down);
    let mixed = total;
    let reciprocal = fixed;
    if (election != 0) {
      const agreeing =
        election == 4 ? v128.or(positive, negative) : v128.bitselect(positive, negative, plus);
      let sum = zero;
      // NaN comes through whoever is elected
      const special = f32x4.ne(total, total);
      const set = v128.andnot(agreeing, special);
      let divisor = zero;
      for (let i: usize = 0; i < <usize>models; i++) {
        const bit = i32x4.splat(1 << <i32>i);
        const agrees = i32x4.eq(v128.and(agreeing, bit), bit);
        sum = v128.bitselect(rounded(f32x4.add(sum, v128.load(changes + (i << 4))), small), sum, agrees);
        if (models <= MOST_IN_TABLE) continue;
        const more = rounded(f32x4.add(divisor, v128.load32_splat(reciprocals + (i << 2))), small);
        divisor = v128.bitselect(more, divisor, i32x4.eq(v128.and(set, bit), bit));
      }
      mixed = v128.bitselect(total, sum, special);
      if (models > MOST_IN_TABLE) {
        const least = v128.load32_splat(reciprocals + (<usize>models << 2));
        const inverted = inverse(f32x4.max(divisor, least), small);
        reciprocal = v128.bitselect(one, inverted, f32x4.eq(divisor, zero));
      } else {
      reciprocal = v128.load32_lane(reciprocals + (<usize>i32x4.extract_lane(set, 0) << 2), zero, 0);
      reciprocal = v128.load32_lane(reciprocals + (<usize>i32x4.extract_lane(set, 1) << 2), reciprocal, 1);
      reciprocal = v128.load32_lane(reciprocals + (<usize>i32x4.extract_lane(set, 2) << 2), reciprocal, 2);
      reciprocal = v128.load32_lane(reciprocals + (<usize>i32x4.extract_lane(set, 3) << 2), reciprocal, 3);
      }
    }
    const delta = rounded(f32x4.mul(rounded(f32x4.mul(mixed, reciprocal), small), lambdas), small);
    v128.store(scratch + DELTA + (<usize>e << 2), delta);
    const base = v128.load(p);
    const sum = rounded(f32x4.add(base, delta), small);
    v128.store(out + (<usize>e << 2), v128.bitselect(base, sum, f32x4.eq(delta, zero)));
  }
  store<i32>(stats, lanesSum(conflicts));
  store<i32>(stats, lanesSum(above), 8);
  store<i32>(stats, lanesSum(below), 12);
}

/**
 * The same for two models, whose changes stay in registers; `scaled`: a scale is not 1. Masks of lanes stand for branches:
 * what is not elected is added as +0, which changes no sum, as none is −0.
 */
@inline
function combineTwo(
  at: usize,
  stride: usize,
  n: i32,
  coefficients: usize,
  election: i32,
  zeroNegative: bool,
  lambda: f32,
  out: usize,
  stats: usize,
  scratch: usize,
  small: bool,
  scaled: bool,
): void {
  const zero = f32x4.splat(0);
  const one = f32x4.splat(1);
  const sign = i32x4.splat(0x80000000);
  const weight0 = v128.load32_splat(coefficients);
  const weight1 = v128.load32_splat(coefficients, 4);
  const scale0 = v128.load32_splat(coefficients, 8);
  const scale1 = v128.load32_splat(coefficients, 12);
  const nobody = v128.load32_splat(coefficients, 16);
  // without an election there is one reciprocal; with one, the bits that it differs by where each and where both agree
  const more: usize = election == 0 ? 0 : 4;
  const only0 = v128.xor(nobody, v128.load32_splat(coefficients + 16 + more));
  const only1 = v128.xor(nobody, v128.load32_splat(coefficients + 16 + 2 * more));
  const both = v128.xor(
    v128.xor(nobody, v128.load32_splat(coefficients + 16 + 3 * more)),
    v128.xor(only0, only1),
  );
  const lambdas = f32x4.splat(lambda);
  // the least vote that elects +: 0, or the smallest above it
  const least = i32x4.splat(zeroNegative ? 1 : 0);
  let conflicts = i32x4.splat(0);
  let above = conflicts;
  let below = conflicts;
  for (let e = 0; e < n; e += 4) {
    const p = at + (<usize>e << 2);
    let s0 = v128.load(p + stride);
    let s1 = v128.load(p + 2 * stride);
    if (scaled) {
      s0 = rounded(f32x4.mul(s0, scale0), small);
      s1 = rounded(f32x4.mul(s1, scale1), small);
    }
    const d0 = rounded(f32x4.mul(s0, weight0), small);
    const d1 = rounded(f32x4.mul(s1, weight1), small);
    const ballot0 = election >= 2 ? s0 : d0;
    const ballot1 = election >= 2 ? s1 : d1;
    const first = f32x4.add(zero, d0);
    const total = rounded(f32x4.add(first, d1), small);
    let votes = total;
    if (election == 2 || election == 4) votes = rounded(f32x4.add(f32x4.add(zero, s0), s1), small);
    else if (election == 3) {
      const vote0 = f32x4.sub(v128.and(f32x4.gt(s0, zero), one), v128.and(f32x4.lt(s0, zero), one));
      const vote1 = f32x4.sub(v128.and(f32x4.gt(s1, zero), one), v128.and(f32x4.lt(s1, zero), one));
      votes = f32x4.add(vote0, vote1);
    }
    let up = f32x4.gt(votes, zero);
    let down = f32x4.lt(votes, zero);
    // ballots for the elected sign are positive from here on
    const flip = v128.andnot(sign, f32x4.ge(votes, least));
    const agreement0 = v128.xor(ballot0, flip);
    const agreement1 = v128.xor(ballot1, flip);
    const for0 = f32x4.gt(agreement0, zero);
    const for1 = f32x4.gt(agreement1, zero);
    let found = v128.or(
      v128.and(for0, f32x4.lt(agreement1, zero)),
      v128.and(for1, f32x4.lt(agreement0, zero)),
    );
    if (e + 4 > n) {
      // the last vector reaches beyond the block's end
      const inside = i32x4.lt_s(i32x4(0, 1, 2, 3), i32x4.splat(n - e));
      found = v128.and(found, inside);
      up = v128.and(up, inside);
      down = v128.and(down, inside);
    }
    conflicts = i32x4.sub(conflicts, found);
    above = i32x4.sub(above, up);
    below = i32x4.sub(below, down);
    let mixed = total;
    let reciprocal = nobody;
    if (election != 0) {
      // NaN comes through whoever is elected
      const special = f32x4.ne(total, total);
      const agrees0 = v128.andnot(election == 4 ? f32x4.ne(s0, zero) : for0, special);
      const agrees1 = v128.andnot(election == 4 ? f32x4.ne(s1, zero) : for1, special);
      const sum = rounded(f32x4.add(v128.and(first, agrees0), v128.and(d1, agrees1)), small);
      mixed = v128.or(sum, v128.and(total, special));
      reciprocal = v128.xor(
        v128.xor(nobody, v128.and(agrees0, only0)),
        v128.xor(v128.and(agrees1, only1), v128.and(v128.and(agrees0, agrees1), both)),
      );
    }
    const delta = rounded(f32x4.mul(rounded(f32x4.mul(mixed, reciprocal), small), lambdas), small);
    v128.store(scratch + DELTA + (<usize>e << 2), delta);
    // a change of zero is added as −0, which leaves every base its bits
    const change = v128.or(delta, v128.and(f32x4.eq(delta, zero), sign));
    v128.store(out + (<usize>e << 2), rounded(f32x4.add(v128.load(p), change), small));
  }
  store<i32>(stats, lanesSum(conflicts));
  store<i32>(stats, lanesSum(above), 8);
  store<i32>(stats, lanesSum(below), 12);
}

/**
 * The elected, divided and scaled sum of task vectors on the base. `values`: the base, then the models, `stride` bytes
 * apart; stats four words a block. `extreme`: a coefficient is small. `scratch`: CHANGES bytes and 16 bytes a model.
 */
export function combine(
  values: usize,
  stride: usize,
  models: i32,
  elements: i32,
  coefficients: usize,
  election: i32,
  zeroNegative: bool,
  lambda: f32,
  extreme: bool,
  out: usize,
  stats: usize,
  scratch: usize,
): void {
  const scaled = models == 2 && (load<f32>(coefficients, 8) != 1 || load<f32>(coefficients, 12) != 1);
  for (let begin = 0; begin < elements; begin += BLOCK) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    const to = out + (<usize>begin << 2);
    let small = extreme;
    for (let i = 0; i <= models && !small; i++) small = hasSmall(at + <usize>i * stride, n);
    if (models == 2 && small) {
      combineTwo(at, stride, n, coefficients, election, zeroNegative, lambda, to, stats, scratch, true, true);
    } else if (models == 2 && scaled) {
      combineTwo(at, stride, n, coefficients, election, zeroNegative, lambda, to, stats, scratch, false, true);
    } else if (models == 2) {
      combineTwo(at, stride, n, coefficients, election, zeroNegative, lambda, to, stats, scratch, false, false);
    } else if (small) {
      combineBlock(at, stride, models, n, coefficients, election, zeroNegative, lambda, to, stats, scratch, true);
    } else {
      combineBlock(at, stride, models, n, coefficients, election, zeroNegative, lambda, to, stats, scratch, false);
    }
    const delta = scratch + DELTA;
    store<f32>(stats, dotBlock(delta, delta, n, hasSmall(delta, n), scratch), 4);
    stats += 16;
  }
}

// Which elements are not 0, as bits: shaders/combine/pack-kept.wgsl.

@inline
function sixteen(p: usize): u32 {
  const zero = f32x4.splat(0);
  return bits16(
    f32x4.ne(v128.load(p), zero),
    f32x4.ne(v128.load(p, 16), zero),
    f32x4.ne(v128.load(p, 32), zero),
    f32x4.ne(v128.load(p, 48), zero),
  );
}

/** ⌈n / 32⌉ words to `mask`: a bit for each of n f32, set where it is not 0. */
export function packKept(values: usize, n: i32, mask: usize): void {
  for (; n >= 32; n -= 32) {
    store<u32>(mask, sixteen(values) | (sixteen(values + 64) << 16));
    values += 128;
    mask += 4;
  }
  if (n == 0) return;
  let word: u32 = 0;
  for (let i = 0; i < n; i++) word |= (<u32>((load<u32>(values + (<usize>i << 2)) & MAGNITUDE) != 0)) << i;
  store<u32>(mask, word);
}
