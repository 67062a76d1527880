// Helpers shared by the block encoders: groups side by side, halves, levels in few bits.
import { narrowF16x4, transpose4, widenF16 } from './lanes';

/** Writes a scale as binary16 and returns it as rounded. */
export function putHalf(value: f32, out: usize): f32 {
  const half = i32x4.extract_lane(narrowF16x4(f32x4.splat(value)), 0);
  store<u16>(out, <u16>half);
  return reinterpret<f32>(widenF16(<u32>half & 0xffff));
}

/** Four runs of `count` f32, `stride` bytes apart, side by side: the i-th vector has the i-th of each. */
@inline
export function sideBySide(from: usize, stride: usize, count: i32, out: usize): void {
  interleaved(from, from + stride, from + 2 * stride, from + 3 * stride, count, out);
}

export function interleaved(a: usize, b: usize, c: usize, d: usize, count: i32, out: usize): void {
  for (let i: usize = 0; i < <usize>count << 2; i += 16) {
    transpose4(v128.load(a + i), v128.load(b + i), v128.load(c + i), v128.load(d + i), out + (i << 2), 16);
  }
}

/** Levels side by side as i32 → bytes, in consecutive runs of `count`. */
export function levelBytes(levels: usize, count: i32, out: usize): void {
  for (let i = 0; i < count; i++) {
    const at = levels + (<usize>i << 4);
    for (let lane = 0; lane < 4; lane++) {
      store<u8>(out + lane * count + i, load<u8>(at + (<usize>lane << 2)));
    }
  }
}

/** 32 levels of four bits: element i and i + 16 in one byte. */
@inline
export function putFourBits(levels: usize, out: usize): void {
  const low = v128.load(levels);
  const high = v128.load(levels, 16);
  const mask = i8x16.splat(15);
  v128.store(out, v128.or(v128.and(low, mask), i8x16.shl(v128.and(high, mask), 4)));
}

/** 32 levels of five bits: a word of the fifth ones, then the others as four bits. */
@inline
export function putFiveBits(levels: usize, out: usize): void {
  const low = i8x16.bitmask(i8x16.shl(v128.load(levels), 3));
  const high = i8x16.bitmask(i8x16.shl(v128.load(levels, 16), 3));
  store<u32>(out, <u32>low | (<u32>high << 16));
  putFourBits(levels, out + 4);
}

/** Σx² of so many elements, one after the other. */
export function squares(x: usize, count: i32): f32 {
  let sum: f32 = 0;
  for (let i: usize = 0; i < <usize>count << 2; i += 4) sum += load<f32>(x + i) * load<f32>(x + i);
  return sum;
}

// Scales and levels of a few weights by least squares, bit for bit as ggml's reference finds them (ggml/src/ggml-quants.c:
// make_qx_quants, make_qkx2_quants and make_qkx3_quants, make_qp_quants). Every operation is rounded to f32, in the
// reference's order; four groups go side by side, one a lane. Element i of the four is the i-th vector at `x`.

/** Smaller groups count as zero. */
const EPSILON: f32 = 1e-15;

@inline
function at(base: usize, i: i32): v128 {
  return v128.load(base + (<usize>i << 4));
}

@inline
function bounded(value: v128, least: v128, most: v128): v128 {
  // one instruction each, where min and max of NaN take several
  return f32x4.pmin(most, f32x4.pmax(least, f32x4.nearest(value)));
}

/**
 * Levels −n … n−1 around zero: x ≈ scale · level, the error weighted by `weights`, or by x² where that is 0.
 * `levels` gets level + n of every element as i32, zeros for a group that counts as zero. Returns the scales.
 */
export function searchScale(x: usize, count: i32, n: f32, weights: usize, levels: usize): v128 {
  const zero = f32x4.splat(0);
  let most = zero;
  let extreme = zero;
  for (let i = 0; i < count; i++) {
    const value = at(x, i);
    const size = f32x4.abs(value);
    const larger = f32x4.gt(size, most);
    most = v128.bitselect(size, most, larger);
    extreme = v128.bitselect(value, extreme, larger);
  }
  const empty = f32x4.lt(most, f32x4.splat(EPSILON));
  const low = f32x4.splat(-n);
  const high = f32x4.splat(n - 1);
  let scale = zero;
  let best = zero;
  let chosen = zero;
  for (let trial = 0; trial < 19; trial++) {
    // the plain one first, then a tenth of a level apart on both sides
    const shift: f32 = trial == 0 ? 0 : trial <= 9 ? <f32>(trial - 10) : <f32>(trial - 9);
    const inverse = f32x4.div(f32x4.splat(-(n + <f32>0.1 * shift)), extreme);
    let xl = zero;
    let ll = zero;
    for (let i = 0; i < count; i++) {
      const value = at(x, i);
      const level = bounded(f32x4.mul(inverse, value), low, high);
      const weight = weights ? at(weights, i) : f32x4.mul(value, value);
      xl = f32x4.add(xl, f32x4.mul(f32x4.mul(weight, value), level));
      ll = f32x4.add(ll, f32x4.mul(f32x4.mul(weight, level), level));
    }
    const ratio = v128.and(f32x4.div(xl, ll), f32x4.ne(ll, zero));
    const better =
      trial == 0
        ? i32x4.splat(-1)
        : v128.and(f32x4.gt(ll, zero), f32x4.gt(f32x4.mul(xl, xl), f32x4.mul(best, ll)));
    scale = v128.bitselect(ratio, scale, better);
    best = v128.bitselect(f32x4.mul(ratio, xl), best, better);
    chosen = v128.bitselect(inverse, chosen, better);
  }
  for (let i = 0; i < count; i++) {
    const level = f32x4.add(bounded(f32x4.mul(chosen, at(x, i)), low, high), f32x4.splat(n));
    v128.store(levels + (<usize>i << 4), v128.andnot(i32x4.trunc_sat_f32x4_s(level), empty));
  }
  return v128.andnot(scale, empty);
}

/**
 * Levels 0 … n of 32 elements above a minimum that is at most 0: x ≈ scale · level + min, with scales of
 * (n + from + step · i) levels tried, i ≤ steps. `levels` gets them as i32, `found` the scales and behind them −min.
 * `scratch`: 512 bytes.
 */
export function searchScaleAndMin(
  x: usize,
  n: f32,
  weights: usize,
  from: f32,
  step: f32,
  steps: i32,
  levels: usize,
  found: usize,
  scratch: usize,
): void {
  const zero = f32x4.splat(0);
  const high = f32x4.splat(n);
  let least = at(x, 0);
  let max = least;
  let sumW = zero;
  let sumX = zero;
  for (let i = 0; i < 32; i++) {
    const value = at(x, i);
    const weight = at(weights, i);
    least = f32x4.pmin(least, value);
    max = f32x4.pmax(max, value);
    sumW = f32x4.add(sumW, weight);
    sumX = f32x4.add(sumX, f32x4.mul(weight, value));
  }
  least = v128.andnot(least, f32x4.gt(least, zero));
  const flat = f32x4.le(max, least);
  let chosen = f32x4.div(high, f32x4.sub(max, least));
  let scale = f32x4.div(f32x4.splat(1), chosen);
  let chosenMin = least;
  let best = zero;
  for (let i = 0; i < 32; i++) {
    const value = at(x, i);
    const level = bounded(f32x4.mul(chosen, f32x4.sub(value, least)), zero, high);
    const off = f32x4.sub(f32x4.add(f32x4.mul(scale, level), least), value);
    best = f32x4.add(best, f32x4.mul(at(weights, i), f32x4.mul(off, off)));
  }
  let minimum = least;
  for (let trial = 0; trial <= steps; trial++) {
    // as the reference has it, from the best minimum so far
    const inverse = f32x4.div(f32x4.splat(from + step * <f32>trial + n), f32x4.sub(max, minimum));
    let sumL = zero;
    let sumLL = zero;
    let sumXL = zero;
    for (let i = 0; i < 32; i++) {
      const value = at(x, i);
      const level = bounded(f32x4.mul(inverse, f32x4.sub(value, minimum)), zero, high);
      v128.store(scratch + (<usize>i << 4), level);
      const weighted = f32x4.mul(at(weights, i), level);
      sumL = f32x4.add(sumL, weighted);
      sumLL = f32x4.add(sumLL, f32x4.mul(weighted, level));
      sumXL = f32x4.add(sumXL, f32x4.mul(weighted, value));
    }
    const determinant = f32x4.sub(f32x4.mul(sumW, sumLL), f32x4.mul(sumL, sumL));
    let thisScale = f32x4.div(f32x4.sub(f32x4.mul(sumW, sumXL), f32x4.mul(sumX, sumL)), determinant);
    let thisMin = f32x4.div(f32x4.sub(f32x4.mul(sumLL, sumX), f32x4.mul(sumL, sumXL)), determinant);
    const above = f32x4.gt(thisMin, zero);
    thisScale = v128.bitselect(f32x4.div(sumXL, sumLL), thisScale, above);
    thisMin = v128.andnot(thisMin, above);
    let error = zero;
    for (let i = 0; i < 32; i++) {
      const off = f32x4.sub(f32x4.add(f32x4.mul(thisScale, at(scratch, i)), thisMin), at(x, i));
      error = f32x4.add(error, f32x4.mul(at(weights, i), f32x4.mul(off, off)));
    }
    const better = v128.and(f32x4.gt(determinant, zero), f32x4.lt(error, best));
    best = v128.bitselect(error, best, better);
    scale = v128.bitselect(thisScale, scale, better);
    chosen = v128.bitselect(inverse, chosen, better);
    chosenMin = v128.bitselect(minimum, chosenMin, better);
    minimum = v128.bitselect(thisMin, minimum, better);
  }
  for (let i = 0; i < 32; i++) {
    const level = bounded(f32x4.mul(chosen, f32x4.sub(at(x, i), chosenMin)), zero, high);
    v128.store(levels + (<usize>i << 4), v128.andnot(i32x4.trunc_sat_f32x4_s(level), flat));
  }
  v128.store(found, v128.andnot(scale, flat));
  v128.store(found, f32x4.neg(minimum), 16);
}

/** Levels 0 … 63 of 8 values that are not negative, as i32: x ≈ scale · level. Returns the scale. */
export function searchPositive(x: usize, levels: usize, weights: usize): f32 {
  let max: f32 = 0;
  for (let i: usize = 0; i < 32; i += 4) max = load<f32>(x + i) > max ? load<f32>(x + i) : max;
  if (max < EPSILON) {
    for (let i: usize = 0; i < 32; i += 4) store<i32>(levels + i, 0);
    return 0;
  }
  let inverse: f32 = 63 / max;
  let best: f32 = Infinity;
  for (let trial = 0; trial < 9; trial++) {
    const shift: f32 = trial == 0 ? 0 : trial <= 4 ? <f32>(trial - 5) : <f32>(trial - 4);
    const tried: f32 = (<f32>0.1 * shift + 63) / max;
    const scale: f32 = 1 / tried;
    let error: f32 = 0;
    for (let i: usize = 0; i < 32; i += 4) {
      const value = load<f32>(x + i);
      const off: f32 = value - scale * min<f32>(63, nearest<f32>(tried * value));
      error += load<f32>(weights + i) * off * off;
    }
    if (!(error < best)) continue;
    best = error;
    inverse = tried;
  }
  let xl: f32 = 0;
  let ll: f32 = 0;
  for (let i: usize = 0; i < 32; i += 4) {
    const value = load<f32>(x + i);
    const level = min<f32>(63, nearest<f32>(inverse * value));
    store<i32>(levels + i, <i32>level);
    xl += load<f32>(weights + i) * value * level;
    ll += load<f32>(weights + i) * level * level;
  }
  for (let round = 0; round < 5; round++) {
    let changed = false;
    for (let i: usize = 0; i < 32; i += 4) {
      const value = load<f32>(x + i);
      const weight = load<f32>(weights + i);
      const before = <f32>load<i32>(levels + i);
      let otherXl: f32 = xl - weight * value * before;
      let otherLl: f32 = ll - weight * before * before;
      if (!(otherXl > 0 && otherLl > 0)) continue;
      const level = min<f32>(63, nearest<f32>((value * otherLl) / otherXl));
      if (level == before) continue;
      otherXl += weight * value * level;
      otherLl += weight * level * level;
      if (!(otherXl * otherXl * ll > xl * xl * otherLl)) continue;
      store<i32>(levels + i, <i32>level);
      xl = otherXl;
      ll = otherLl;
      changed = true;
    }
    if (!changed) break;
  }
  return ll > 0 ? xl / ll : 0;
}
