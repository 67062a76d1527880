// K-quants: 256 elements with scales of their own for every 32 or 16, bit for bit as ggml's reference makes them
// (ggml/src/ggml-quants.c: quantize_row_q4_K_ref, …_q5_K_ref, …_q6_K_ref, and their `_impl` with an importance matrix).
import { levelBytes, putHalf, searchPositive, searchScale, searchScaleAndMin, sideBySide, squares } from './block-parts';

// Places in the scratch: 256 elements side by side and their levels, weights of four groups, levels as bytes, small arrays.
const LEVELS: usize = 1024;
const WEIGHTS: usize = 2048;
const BYTES: usize = 2560;
const SCALES: usize = 2816;
const MINS: usize = 2880;
const SUMS: usize = 2944;
const SCALE_LEVELS: usize = 3008;
const MIN_LEVELS: usize = 3040;
const SEARCH: usize = 3072;
const FOUND: usize = 3584;

/** Levels 0 … 63 of the largest; returns the scale. */
function sixBits(values: usize, levels: usize): f32 {
  let max: f32 = 0;
  for (let i: usize = 0; i < 32; i += 4) max = load<f32>(values + i) > max ? load<f32>(values + i) : max;
  const inverse: f32 = max > 0 ? 63 / max : 0;
  for (let i: usize = 0; i < 32; i += 4) {
    store<i32>(levels + i, min(63, <i32>nearest<f32>(inverse * load<f32>(values + i)) & 255));
  }
  return max / 63;
}

/** 12 bytes: the first four scales and minima whole, of the others the lower four bits and, above the first, the upper. */
function putScales(scratch: usize, out: usize): void {
  for (let i: usize = 0; i < 4; i++) {
    const scale = load<i32>(scratch + SCALE_LEVELS + (i << 2), 16);
    const least = load<i32>(scratch + MIN_LEVELS + (i << 2), 16);
    store<u8>(out + i, load<i32>(scratch + SCALE_LEVELS + (i << 2)) | ((scale >> 4) << 6));
    store<u8>(out + i, load<i32>(scratch + MIN_LEVELS + (i << 2)) | ((least >> 4) << 6), 4);
    store<u8>(out + i, (scale & 15) | ((least & 15) << 4), 8);
  }
}

/** Weights of four groups side by side at `x`, and with importance their sums. */
function weigh(x: usize, spread: f32, importance: usize, weights: usize, sums: usize): void {
  const zero = f32x4.splat(0);
  let sum = zero;
  if (importance) {
    sideBySide(importance, 128, 32, weights);
    for (let i: usize = 0; i < 512; i += 16) {
      const value = v128.load(x + i);
      const root = f32x4.sqrt(f32x4.add(f32x4.splat(spread), f32x4.mul(value, value)));
      const weight = f32x4.mul(v128.load(weights + i), root);
      v128.store(weights + i, weight);
      sum = f32x4.add(sum, weight);
    }
    v128.store(sums, sum);
    return;
  }
  for (let i: usize = 0; i < 512; i += 16) {
    const value = v128.load(x + i);
    sum = f32x4.add(sum, f32x4.mul(value, value));
  }
  const average = f32x4.sqrt(f32x4.div(sum, f32x4.splat(32)));
  for (let i: usize = 0; i < 512; i += 16) {
    v128.store(weights + i, f32x4.add(average, f32x4.abs(v128.load(x + i))));
  }
}

/** Bytes of the levels 0 … `most` of one block, and the 16 bytes of its scales at `out`. */
function groupsOf32(x: usize, most: f32, importance: usize, out: usize, scratch: usize): void {
  const spread: f32 = importance ? (2 * squares(x, 256)) / 256 : 0;
  for (let half: usize = 0; half < 2; half++) {
    const values = scratch + (half << 9);
    const levels = scratch + LEVELS + (half << 9);
    const found = scratch + FOUND;
    sideBySide(x + (half << 9), 128, 32, values);
    const columns = importance ? importance + (half << 9) : 0;
    weigh(values, spread, columns, scratch + WEIGHTS, scratch + SUMS + (half << 4));
    const from: f32 = importance ? -0.9 : most == 15 ? -1 : -0.5;
    const step: f32 = importance ? 0.05 : 0.1;
    const steps = importance ? 36 : most == 15 ? 20 : 15;
    searchScaleAndMin(values, most, scratch + WEIGHTS, from, step, steps, levels, found, scratch + SEARCH);
    v128.store(scratch + SCALES + (half << 4), v128.load(found));
    v128.store(scratch + MINS + (half << 4), v128.load(found, 16));
  }
  const sums = scratch + SUMS;
  const scales = scratch + SCALE_LEVELS;
  const mins = scratch + MIN_LEVELS;
  const d = putHalf(
    importance ? searchPositive(scratch + SCALES, scales, sums) : sixBits(scratch + SCALES, scales),
    out,
  );
  const dmin = putHalf(
    importance ? searchPositive(scratch + MINS, mins, sums) : sixBits(scratch + MINS, mins),
    out + 2,
  );
  putScales(scratch, out + 4);
  for (let half: usize = 0; half < 2; half++) {
    const scale = f32x4.mul(f32x4.splat(d), f32x4.convert_i32x4_s(v128.load(scales + (half << 4))));
    const least = f32x4.mul(f32x4.splat(dmin), f32x4.convert_i32x4_s(v128.load(mins + (half << 4))));
    const none = f32x4.eq(scale, f32x4.splat(0));
    for (let i: usize = 0; i < 512; i += 16) {
      const at = scratch + (half << 9) + i;
      const level = f32x4.nearest(f32x4.div(f32x4.add(v128.load(at), least), scale));
      const within = f32x4.pmax(f32x4.splat(0), f32x4.pmin(f32x4.splat(most), level));
      const old = v128.load(at, 1024);
      v128.store(at, v128.bitselect(old, i32x4.trunc_sat_f32x4_s(within), none), 1024);
    }
    levelBytes(scratch + LEVELS + (half << 9), 32, scratch + BYTES + (half << 7));
  }
}

/** d and dmin (f16), six bits each of 8 scales and 8 minima, then two elements a byte. `scratch`: 4 kB. */
export function encodeQ4K(x: usize, columns: i32, importance: usize, out: usize, scratch: usize): void {
  const bytes = scratch + BYTES;
  for (let block = 0; block < columns; block += 256, x += 1024, out += 144) {
    groupsOf32(x, 15, importance ? importance + (<usize>block << 2) : 0, out, scratch);
    for (let part: usize = 0; part < 4; part++) {
      for (let i: usize = 0; i < 32; i += 16) {
        const from = bytes + (part << 6) + i;
        v128.store(out + 16 + (part << 5) + i, v128.or(v128.load(from), i8x16.shl(v128.load(from, 32), 4)));
      }
    }
  }
}

/** As Q4_K, with 32 bytes of fifth bits ahead of the lower four. `scratch`: 4 kB. */
export function encodeQ5K(x: usize, columns: i32, importance: usize, out: usize, scratch: usize): void {
  const bytes = scratch + BYTES;
  const mask = i8x16.splat(15);
  for (let block = 0; block < columns; block += 256, x += 1024, out += 176) {
    groupsOf32(x, 31, importance ? importance + (<usize>block << 2) : 0, out, scratch);
    for (let i: usize = 0; i < 32; i += 16) {
      let fifth = i8x16.splat(0);
      for (let part: usize = 0; part < 4; part++) {
        const low = v128.load(bytes + (part << 6) + i);
        const high = v128.load(bytes + (part << 6) + i, 32);
        const two = v128.or(i8x16.shr_u(low, 4), i8x16.shl(i8x16.shr_u(high, 4), 1));
        fifth = v128.or(fifth, i8x16.shl(two, <i32>part << 1));
        const four = v128.or(v128.and(low, mask), i8x16.shl(v128.and(high, mask), 4));
        v128.store(out + 48 + (part << 5) + i, four);
      }
      v128.store(out + 16 + i, fifth);
    }
  }
}

/** Lower four bits of all, upper two of all, 16 signed scales, then d (f16). `scratch`: 4 kB. */
export function encodeQ6K(x: usize, columns: i32, importance: usize, out: usize, scratch: usize): void {
  const scales = scratch + SCALES;
  for (let block = 0; block < columns; block += 256, x += 1024, out += 210) {
    for (let batch: usize = 0; batch < 4; batch++) {
      const values = scratch + (batch << 8);
      sideBySide(x + (batch << 8), 64, 16, values);
      let weights: usize = 0;
      if (importance) {
        weights = scratch + WEIGHTS;
        sideBySide(importance + (<usize>block << 2) + (batch << 8), 64, 16, weights);
      }
      const scale = searchScale(values, 16, 32, weights, scratch + LEVELS + (batch << 8));
      v128.store(scales + (batch << 4), scale);
    }
    let extreme: f32 = 0;
    let most: f32 = 0;
    for (let group: usize = 0; group < 64; group += 4) {
      const scale = load<f32>(scales + group);
      if (abs(scale) > most) {
        most = abs(scale);
        extreme = scale;
      }
    }
    if (most < 1e-15) {
      for (let i: usize = 0; i < 210; i += 2) store<u16>(out + i, 0);
      continue;
    }
    const inverse: f32 = -128 / extreme;
    const d = putHalf(1 / inverse, out + 208);
    for (let batch: usize = 0; batch < 4; batch++) {
      const wide = f32x4.nearest(f32x4.mul(f32x4.splat(inverse), v128.load(scales + (batch << 4))));
      const level = i32x4.min_s(i32x4.trunc_sat_f32x4_s(wide), i32x4.splat(127));
      const words = i16x8.narrow_i32x4_s(level, level);
      v128.store32_lane(out + 192 + (batch << 2), i8x16.narrow_i16x8_s(words, words), 0);
      const scale = f32x4.mul(f32x4.splat(d), f32x4.convert_i32x4_s(level));
      const none = f32x4.eq(scale, f32x4.splat(0));
      for (let i: usize = 0; i < 256; i += 16) {
        const at = scratch + (batch << 8) + i;
        const each = f32x4.nearest(f32x4.div(v128.load(at), scale));
        const within = f32x4.pmax(f32x4.splat(-32), f32x4.pmin(f32x4.splat(31), each));
        const fresh = i32x4.add(i32x4.trunc_sat_f32x4_s(within), i32x4.splat(32));
        v128.store(at, v128.bitselect(v128.load(at, 1024), fresh, none), 1024);
      }
      levelBytes(scratch + LEVELS + (batch << 8), 16, scratch + BYTES + (batch << 6));
    }
    putSixBits(scratch + BYTES, out);
  }
}

@inline
function putSixBits(bytes: usize, out: usize): void {
  const mask = i8x16.splat(15);
  for (let part: usize = 0; part < 2; part++) {
    for (let i: usize = 0; i < 32; i += 16) {
      const from = bytes + (part << 7) + i;
      const a = v128.load(from);
      const b = v128.load(from, 32);
      const c = v128.load(from, 64);
      const d = v128.load(from, 96);
      const low = out + (part << 6) + i;
      v128.store(low, v128.or(v128.and(a, mask), i8x16.shl(v128.and(c, mask), 4)));
      v128.store(low, v128.or(v128.and(b, mask), i8x16.shl(v128.and(d, mask), 4)), 32);
      const first = v128.or(i8x16.shr_u(a, 4), i8x16.shl(i8x16.shr_u(b, 4), 2));
      const last = v128.or(i8x16.shl(i8x16.shr_u(c, 4), 4), i8x16.shl(i8x16.shr_u(d, 4), 6));
      v128.store(out + 128 + (part << 5) + i, v128.or(first, last));
    }
  }
}
