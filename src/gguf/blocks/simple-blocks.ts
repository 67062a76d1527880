/**
 * Blocks of 32 elements with one scale, bit for bit as ggml's reference makes them (ggml/src/ggml-quants.c:
 * quantize_row_q8_0_ref, …_q4_0_ref, …_q5_0_ref, …_q5_1_ref, and their `_impl` with an importance matrix). Arithmetic is in f32: every operation is rounded.
 */
import { f32ToF16 } from '../../formats/half';
import { searchScale, searchScaleAndMin } from './level-search';

const f = Math.fround;
const SIZE = 32;

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** Writes a scale as binary16. */
export function putHalf(value: number, out: Uint8Array, at: number): void {
  float[0] = value;
  const half = f32ToF16(bits[0]!);
  out[at] = half & 255;
  out[at + 1] = half >> 8;
}

/** d = max|x| / 127 (f16), then 32 signed bytes, x/d rounded half away from zero. */
export function encodeQ8_0(x: Float32Array, out: Uint8Array): void {
  for (let block = 0, at = 0; block < x.length; block += SIZE, at += 34) {
    let most = 0;
    for (let i = 0; i < SIZE; i++) most = Math.max(most, Math.abs(x[block + i]!));
    const scale = f(most / 127);
    const inverse = scale === 0 ? 0 : f(1 / scale);
    putHalf(scale, out, at);
    for (let i = 0; i < SIZE; i++) {
      const q = f(x[block + i]! * inverse);
      out[at + 2 + i] = q < 0 ? -Math.floor(0.5 - q) : Math.floor(q + 0.5);
    }
  }
}

/** The element of largest size, sign and all; the first of several. */
function extreme(x: Float32Array, begin: number): number {
  let most = 0;
  let value = 0;
  for (let i = begin; i < begin + SIZE; i++) {
    const size = Math.abs(x[i]!);
    if (most < size) {
      most = size;
      value = x[i]!;
    }
  }
  return value;
}

/**
 * d = extreme / −8 (f16), then two elements a byte: i and i + 16, each ⌊x/d + 8.5⌋ up to 15.
 * @param importance one weight for every column of a row: then scale and levels are searched for
 */
export function encodeQ4_0(x: Float32Array, out: Uint8Array, importance?: Float32Array): void {
  if (importance) {
    weighted(x, importance, (begin) => {
      const at = (begin / SIZE) * 18;
      putHalf(searchScale(x, begin, SIZE, 8, weights, 0, levels, 0), out, at);
      for (let i = 0; i < 16; i++) out[at + 2 + i] = levels[i]! | (levels[i + 16]! << 4);
    });
    return;
  }
  for (let block = 0, at = 0; block < x.length; block += SIZE, at += 18) {
    const scale = f(extreme(x, block) / -8);
    const inverse = scale === 0 ? 0 : f(1 / scale);
    putHalf(scale, out, at);
    const level = (i: number) => Math.min(15, Math.trunc(f(f(x[block + i]! * inverse) + 8.5)));
    for (let i = 0; i < 16; i++) out[at + 2 + i] = level(i) | (level(i + 16) << 4);
  }
}

/** d = extreme / −16 (f16), 32 fifth bits, then the lower four as in Q4_0. */
export function encodeQ5_0(x: Float32Array, out: Uint8Array, importance?: Float32Array): void {
  if (importance) {
    weighted(x, importance, (begin) => {
      const at = (begin / SIZE) * 22;
      putHalf(searchScale(x, begin, SIZE, 16, weights, 0, levels, 0), out, at);
      putFiveBits((i) => levels[i]!, out, at + 2);
    });
    return;
  }
  for (let block = 0, at = 0; block < x.length; block += SIZE, at += 22) {
    const scale = f(extreme(x, block) / -16);
    const inverse = scale === 0 ? 0 : f(1 / scale);
    putHalf(scale, out, at);
    putFiveBits((i) => Math.min(31, Math.trunc(f(f(x[block + i]! * inverse) + 16.5))), out, at + 2);
  }
}

/** d = (max − min)/31 and min (both f16), 32 fifth bits, then the lower four. */
export function encodeQ5_1(x: Float32Array, out: Uint8Array, importance?: Float32Array): void {
  if (importance) {
    weighted(x, importance, (begin) => {
      const at = (begin / SIZE) * 24;
      searchScaleAndMin(x, begin, 31, weights, { from: -0.9, step: 0.05, steps: 36 }, levels, 0, found);
      putHalf(found.scale, out, at);
      putHalf(-found.min, out, at + 2);
      putFiveBits((i) => levels[i]!, out, at + 4);
    });
    return;
  }
  for (let block = 0, at = 0; block < x.length; block += SIZE, at += 24) {
    let least = x[block]!;
    let most = least;
    for (let i = 1; i < SIZE; i++) {
      const value = x[block + i]!;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    const scale = f(f(most - least) / 31);
    const inverse = scale === 0 ? 0 : f(1 / scale);
    putHalf(scale, out, at);
    putHalf(least, out, at + 2);
    putFiveBits((i) => Math.trunc(f(f(f(x[block + i]! - least) * inverse) + 0.5)), out, at + 4);
  }
}

const weights = new Float32Array(SIZE);
const levels = new Uint8Array(SIZE);
const found = { scale: 0, min: 0 };

/** Visits every block with its weights: importance · √(mean x² of the row + x²). */
function weighted(x: Float32Array, importance: Float32Array, visit: (begin: number) => void): void {
  const columns = importance.length;
  for (let row = 0; row < x.length; row += columns) {
    let sum = 0;
    for (let i = row; i < row + columns; i++) sum = f(sum + f(x[i]! * x[i]!));
    const mean = f(sum / columns);
    for (let column = 0; column < columns; column += SIZE) {
      for (let i = 0; i < SIZE; i++) {
        const value = x[row + column + i]!;
        weights[i] = f(importance[column + i]! * f(Math.sqrt(f(mean + f(value * value)))));
      }
      visit(row + column);
    }
  }
}

/** 32 levels of five bits: a word of the fifth ones, then two lower halves a byte. */
function putFiveBits(level: (i: number) => number, out: Uint8Array, at: number): void {
  let fifth = 0;
  for (let i = 0; i < 16; i++) {
    const low = level(i);
    const high = level(i + 16);
    out[at + 4 + i] = (low & 15) | ((high & 15) << 4);
    fifth |= ((low >> 4) << i) | ((high >> 4) << (i + 16));
  }
  for (let byte = 0; byte < 4; byte++) out[at + byte] = (fifth >>> (8 * byte)) & 255;
}
