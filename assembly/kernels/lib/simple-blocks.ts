// Blocks of 32 elements with one scale, bit for bit as ggml's reference makes them (ggml/src/ggml-quants.c:
// quantize_row_q8_0_ref, …_q4_0_ref, …_q4_1_ref, …_q5_0_ref, …_q5_1_ref, and their `_impl` with an importance matrix).
import { interleaved, levelBytes, putFiveBits, putFourBits, putHalf, searchScale, searchScaleAndMin, squares } from './block-parts';

/** Rounded half away from zero. */
@inline
function away(x: v128): v128 {
  const whole = f32x4.trunc(x);
  const isMore = f32x4.ge(f32x4.abs(f32x4.sub(x, whole)), f32x4.splat(0.5));
  const one = v128.or(f32x4.splat(1), v128.and(x, i32x4.splat(0x80000000)));
  return f32x4.add(whole, v128.and(one, isMore));
}

@inline
function largest(sizes: v128): f32 {
  const half = f32x4.pmax(sizes, v128.shuffle<u32>(sizes, sizes, 2, 3, 0, 1));
  return f32x4.extract_lane(f32x4.pmax(half, v128.shuffle<u32>(half, half, 1, 0, 3, 2)), 0);
}

/** d = max|x| / 127 (f16), then 32 signed bytes, x/d rounded half away from zero. */
export function encodeQ8_0(x: usize, columns: i32, out: usize): void {
  for (const end = x + (<usize>columns << 2); x < end; x += 128, out += 34) {
    let sizes = f32x4.splat(0);
    for (let i: usize = 0; i < 128; i += 16) sizes = f32x4.pmax(sizes, f32x4.abs(v128.load(x + i)));
    const scale: f32 = largest(sizes) / 127;
    const inverse = f32x4.splat(scale == 0 ? 0 : 1 / scale);
    putHalf(scale, out);
    for (let i: usize = 0; i < 32; i += 8) {
      const p = x + (i << 2);
      const low = i32x4.trunc_sat_f32x4_s(away(f32x4.mul(v128.load(p), inverse)));
      const high = i32x4.trunc_sat_f32x4_s(away(f32x4.mul(v128.load(p, 16), inverse)));
      const words = i16x8.narrow_i32x4_s(low, high);
      v128.store64_lane(out + 2 + i, i8x16.narrow_i16x8_s(words, words), 0);
    }
  }
}

/** The element of largest size, sign and all; the first of several. */
@inline
function extreme(x: usize): f32 {
  let most: f32 = 0;
  let value: f32 = 0;
  for (let i: usize = 0; i < 128; i += 4) {
    const each = load<f32>(x + i);
    if (most < abs(each)) {
      most = abs(each);
      value = each;
    }
  }
  return value;
}

/** 32 bytes at `levels`: ⌊(x − least) · inverse + shift⌋, at most `most`. */
@inline
function plainLevels(x: usize, least: f32, inverse: f32, shift: f32, most: i32, levels: usize): void {
  for (let i: usize = 0; i < 32; i += 4) {
    const scaled = f32x4.mul(f32x4.sub(v128.load(x + (i << 2)), f32x4.splat(least)), f32x4.splat(inverse));
    const level = i32x4.min_s(i32x4.trunc_sat_f32x4_s(f32x4.add(scaled, f32x4.splat(shift))), i32x4.splat(most));
    const words = i16x8.narrow_i32x4_s(level, level);
    v128.store32_lane(levels + i, i8x16.narrow_i16x8_u(words, words), 0);
  }
}

/** Levels of 32 elements as bits, 31 the largest or 15; returns where the next block begins. */
function putLevels(levels: usize, most: i32, out: usize): usize {
  if (most == 31) putFiveBits(levels, out);
  else putFourBits(levels, out);
  return out + (most == 31 ? 20 : 16);
}

/**
 * Q4_0, Q4_1, Q5_0, Q5_1: d = extreme / −8 or −16 (f16), or d = (max − min) / `most` and min (both f16), then the levels, whose
 * fifth bits are a word ahead of the others: two elements a byte, i and i + 16. `most`: the largest level, 15 for Q4_…, 31 for
 * Q5_…. `scratch`: 32 bytes.
 */
export function encodePlain(x: usize, columns: i32, most: i32, withMin: bool, out: usize, scratch: usize): void {
  const half = <f32>((most + 1) >> 1);
  for (const end = x + (<usize>columns << 2); x < end; x += 128) {
    if (withMin) putScaleAndMin(x, most, out, scratch);
    else {
      const scale: f32 = extreme(x) / -half;
      putHalf(scale, out);
      plainLevels(x, 0, scale == 0 ? 0 : 1 / scale, half + 0.5, most, scratch);
    }
    out = putLevels(scratch, most, out + (withMin ? 4 : 2));
  }
}

function putScaleAndMin(x: usize, levels: i32, out: usize, bytes: usize): void {
  let least = load<f32>(x);
  let most = least;
  for (let i: usize = 4; i < 128; i += 4) {
    const value = load<f32>(x + i);
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const scale: f32 = (most - least) / <f32>levels;
  putHalf(scale, out);
  putHalf(least, out + 2);
  plainLevels(x, least, scale == 0 ? 0 : 1 / scale, 0.5, levels, bytes);
}

/**
 * The same four with a weight for every column: importance · √(mean x² of the row + x²), by which scale and levels are
 * searched for, four blocks side by side. `scratch`: 2.5 kB.
 */
export function encodeWeighted(
  x: usize,
  columns: i32,
  importance: usize,
  most: i32,
  withMin: bool,
  out: usize,
  scratch: usize,
): void {
  const mean = f32x4.splat(squares(x, columns) / <f32>columns);
  const values = scratch;
  const weights = scratch + 512;
  const levels = scratch + 1024;
  const bytes = scratch + 1536;
  const found = scratch + 1664;
  const search = scratch + 1728;
  const blocks = columns >> 5;
  for (let first = 0; first < blocks; first += 4) {
    const a = <usize>first << 7;
    const b = <usize>min(first + 1, blocks - 1) << 7;
    const c = <usize>min(first + 2, blocks - 1) << 7;
    const d = <usize>min(first + 3, blocks - 1) << 7;
    interleaved(x + a, x + b, x + c, x + d, 32, values);
    interleaved(importance + a, importance + b, importance + c, importance + d, 32, weights);
    for (let i: usize = 0; i < 512; i += 16) {
      const value = v128.load(values + i);
      const spread = f32x4.sqrt(f32x4.add(mean, f32x4.mul(value, value)));
      v128.store(weights + i, f32x4.mul(v128.load(weights + i), spread));
    }
    if (withMin) searchScaleAndMin(values, <f32>most, weights, -0.9, 0.05, 36, levels, found, search);
    else v128.store(found, searchScale(values, 32, <f32>((most + 1) >> 1), weights, levels));
    levelBytes(levels, 32, bytes);
    for (let lane = 0; lane < min(4, blocks - first); lane++) {
      putHalf(load<f32>(found + (<usize>lane << 2)), out);
      if (withMin) putHalf(-load<f32>(found + (<usize>lane << 2), 16), out + 2);
      out = putLevels(bytes + (<usize>lane << 5), most, out + (withMin ? 4 : 2));
    }
  }
}
