/**
 * K-quants: 256 elements with scales of their own for every 32 or 16, bit for bit as ggml's reference makes them
 * (ggml/src/ggml-quants.c: quantize_row_q4_K_ref, …_q5_K_ref, …_q6_K_ref, and their `_impl` with an importance matrix).
 */
import { f16ToF32 } from '../../formats/half';
import { nearest, searchPositive, searchScale, searchScaleAndMin, type Trials } from './level-search';
import { putHalf } from './simple-blocks';

const f = Math.fround;
const SIZE = 256;
const GROUP = 32;

const found = { scale: 0, min: 0 };
const weights = new Float32Array(GROUP);
const scales = new Float32Array(8);
const mins = new Float32Array(8);
const sums = new Float32Array(8);
const scaleLevels = new Uint8Array(8);
const minLevels = new Uint8Array(8);
const levels = new Uint8Array(SIZE);

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

function half(out: Uint8Array, at: number): number {
  bits[0] = f16ToF32(out[at]! | (out[at + 1]! << 8));
  return float[0]!;
}

/** What differs between Q4_K and Q5_K: the largest level, and how scales are searched for. */
interface Kind {
  most: 15 | 31;
  trials: Trials;
}

const Q4: Kind = { most: 15, trials: { from: -1, step: 0.1, steps: 20 } };
const Q5: Kind = { most: 31, trials: { from: -0.5, step: 0.1, steps: 15 } };
const WITH_IMPORTANCE: Trials = { from: -0.9, step: 0.05, steps: 36 };

/**
 * d and dmin (f16), six bits each of 8 scales and 8 minima, then two elements a byte.
 * @param importance one weight for every column of a row
 */
export function encodeQ4K(x: Float32Array, out: Uint8Array, importance?: Float32Array): void {
  for (let block = 0, at = 0; block < x.length; block += SIZE, at += 144) {
    groupsOf32(x, block, Q4, importance, out, at);
    for (let half64 = 0; half64 < 4; half64++) {
      for (let i = 0; i < GROUP; i++) {
        const from = 64 * half64 + i;
        out[at + 16 + GROUP * half64 + i] = levels[from]! | (levels[from + GROUP]! << 4);
      }
    }
  }
}

/** As Q4_K, with 32 bytes of fifth bits ahead of the lower four. */
export function encodeQ5K(x: Float32Array, out: Uint8Array, importance?: Float32Array): void {
  for (let block = 0, at = 0; block < x.length; block += SIZE, at += 176) {
    groupsOf32(x, block, Q5, importance, out, at);
    out.fill(0, at + 16, at + 48);
    for (let half64 = 0; half64 < 4; half64++) {
      for (let i = 0; i < GROUP; i++) {
        const low = levels[64 * half64 + i]!;
        const high = levels[64 * half64 + i + GROUP]!;
        out[at + 16 + i]! |= ((low >> 4) | ((high >> 4) << 1)) << (2 * half64);
        out[at + 48 + GROUP * half64 + i] = (low & 15) | ((high & 15) << 4);
      }
    }
  }
}

/** Fills `levels` of one block, and the 16 bytes of its scales. */
function groupsOf32(
  x: Float32Array,
  block: number,
  kind: Kind,
  importance: Float32Array | undefined,
  out: Uint8Array,
  at: number,
): void {
  const spread = importance ? f(f(2 * squares(x, block, SIZE)) / SIZE) : 0;
  for (let group = 0; group < 8; group++) {
    const begin = block + GROUP * group;
    if (importance) {
      const column = begin % importance.length;
      for (let i = 0; i < GROUP; i++) {
        const value = x[begin + i]!;
        weights[i] = f(importance[column + i]! * f(Math.sqrt(f(spread + f(value * value)))));
      }
      let sum = 0;
      for (let i = 0; i < GROUP; i++) sum = f(sum + weights[i]!);
      sums[group] = sum;
    } else {
      const average = f(Math.sqrt(f(squares(x, begin, GROUP) / GROUP)));
      for (let i = 0; i < GROUP; i++) weights[i] = f(average + Math.abs(x[begin + i]!));
    }
    const trials = importance ? WITH_IMPORTANCE : kind.trials;
    searchScaleAndMin(x, begin, kind.most, weights, trials, levels, GROUP * group, found);
    scales[group] = found.scale;
    mins[group] = found.min;
  }
  if (importance) {
    putHalf(searchPositive(scales, scaleLevels, sums), out, at);
    putHalf(searchPositive(mins, minLevels, sums), out, at + 2);
  } else {
    putHalf(sixBits(scales, scaleLevels), out, at);
    putHalf(sixBits(mins, minLevels), out, at + 2);
  }
  putScales(out, at + 4);
  const d = half(out, at);
  const dmin = half(out, at + 2);
  for (let group = 0; group < 8; group++) {
    const scale = f(d * (scaleLevels[group]! & 63));
    if (scale === 0) continue;
    const min = f(dmin * (minLevels[group]! & 63));
    for (let i = GROUP * group; i < GROUP * (group + 1); i++) {
      levels[i] = Math.max(0, Math.min(kind.most, nearest(f(f(x[block + i]! + min) / scale))));
    }
  }
}

/** Σx² of so many elements. */
function squares(x: Float32Array, begin: number, count: number): number {
  let sum = 0;
  for (let i = begin; i < begin + count; i++) sum = f(sum + f(x[i]! * x[i]!));
  return sum;
}

/** Levels 0 … 63 of the largest. @returns the scale */
function sixBits(values: Float32Array, out: Uint8Array): number {
  let max = 0;
  for (const value of values) if (value > max) max = value;
  const inverse = max > 0 ? f(63 / max) : 0;
  for (let i = 0; i < 8; i++) out[i] = Math.min(63, nearest(inverse * values[i]!) & 255);
  return f(max / 63);
}

/** 12 bytes: the first four scales and minima whole, of the others the lower four bits and, above the first, the upper. */
function putScales(out: Uint8Array, at: number): void {
  for (let i = 0; i < 4; i++) {
    const scale = scaleLevels[i + 4]!;
    const min = minLevels[i + 4]!;
    out[at + i] = scaleLevels[i]! | ((scale >> 4) << 6);
    out[at + 4 + i] = minLevels[i]! | ((min >> 4) << 6);
    out[at + 8 + i] = (scale & 15) | ((min & 15) << 4);
  }
}

const scales16 = new Float32Array(16);

/** Lower four bits of all, upper two of all, 16 signed scales, then d (f16). */
export function encodeQ6K(x: Float32Array, out: Uint8Array, importance?: Float32Array): void {
  for (let block = 0, at = 0; block < x.length; block += SIZE, at += 210) {
    let extreme = 0;
    let most = 0;
    for (let group = 0; group < 16; group++) {
      const begin = block + 16 * group;
      const column = importance ? begin % importance.length : 0;
      const scale = searchScale(x, begin, 16, 32, importance, column, levels, 16 * group);
      scales16[group] = scale;
      if (Math.abs(scale) > most) {
        most = Math.abs(scale);
        extreme = scale;
      }
    }
    if (most < f(1e-15)) {
      out.fill(0, at, at + 210);
      continue;
    }
    const inverse = f(-128 / extreme);
    putHalf(f(1 / inverse), out, at + 208);
    const d = half(out, at + 208);
    for (let group = 0; group < 16; group++) {
      const level = Math.min(127, nearest(inverse * scales16[group]!));
      out[at + 192 + group] = level;
      const scale = f(d * level);
      if (scale === 0) continue;
      for (let i = 16 * group; i < 16 * (group + 1); i++) {
        levels[i] = 32 + Math.max(-32, Math.min(31, nearest(f(x[block + i]! / scale))));
      }
    }
    putSixBitLevels(out, at);
  }
}

function putSixBitLevels(out: Uint8Array, at: number): void {
  for (let part = 0; part < 2; part++) {
    for (let i = 0; i < GROUP; i++) {
      const first = 128 * part + i;
      const a = levels[first]!;
      const b = levels[first + 32]!;
      const c = levels[first + 64]!;
      const d = levels[first + 96]!;
      out[at + 64 * part + i] = (a & 15) | ((c & 15) << 4);
      out[at + 64 * part + GROUP + i] = (b & 15) | ((d & 15) << 4);
      out[at + 128 + GROUP * part + i] = (a >> 4) | ((b >> 4) << 2) | ((c >> 4) << 4) | ((d >> 4) << 6);
    }
  }
}
