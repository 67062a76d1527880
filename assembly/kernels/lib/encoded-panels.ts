import { aimSums, put8, wide4 } from './panels';
import { encodeQ8_0 } from './simple-blocks';

// The linear layer by weights of eight bits: blocks of 32 inputs as in Q8_0, in panels of eight outputs. A block of a panel is
// eight scales (f16), then for each pair of inputs two signed bytes of each output. Inputs are cut to 16 bits by a scale of their
// own for each block of 32: a block's sum is exact in 32 bits (32 · 127 · 32767 < 2^31), and the sums of blocks go on in f32.

const BLOCK: i32 = 32;
/** Bytes of a block of a panel. */
const PANEL_BLOCK: usize = 272;
const BLOCK_BYTES: usize = 34;

/** One stored weight row as f32. */
function widenRow<T>(from: usize, to: usize, n: i32): void {
  for (const end = to + (<usize>n << 2); to < end; to += 16) {
    v128.store(to, wide4<T>(from));
    from += 4 * sizeof<T>();
  }
}

/** Gives a block that has a value which is not finite a scale that no sum survives. */
function tellNonFinite(x: usize, block: usize): void {
  let odd = i32x4.splat(0);
  for (let i: usize = 0; i < 128; i += 16) {
    const size = v128.and(v128.load(x + i), i32x4.splat(0x7fffffff));
    odd = v128.or(odd, i32x4.ge_s(size, i32x4.splat(0x7f800000)));
  }
  if (v128.any_true(odd)) store<u16>(block, 0x7e00);
}

/**
 * Encodes stored rows into panels.
 * @param w `outputs` rows of `inputs` (a multiple of 32) stored elements; beyond the last row of a panel there are zeros
 * @param room 4 · inputs bytes, and eight rows in blocks
 */
export function encodePanels(w: usize, dtype: i32, inputs: i32, outputs: i32, to: usize, room: usize): void {
  const pitch = <usize>inputs * (dtype == 0 ? 4 : 2);
  const blocks = inputs / BLOCK;
  const rowBytes = <usize>blocks * BLOCK_BYTES;
  const rows = room + (<usize>inputs << 2);
  for (let o = 0; o < outputs; o += 8) {
    const width = min(8, outputs - o);
    if (width < 8) memory.fill(rows, 0, 8 * rowBytes);
    for (let r = 0; r < width; r++) {
      if (dtype == 0) widenRow<f32>(w, room, inputs);
      else if (dtype == 1) widenRow<i16>(w, room, inputs);
      else widenRow<u16>(w, room, inputs);
      const row = rows + <usize>r * rowBytes;
      encodeQ8_0(room, inputs, row);
      for (let b = 0; b < blocks; b++) tellNonFinite(room + (<usize>b << 7), row + <usize>b * BLOCK_BYTES);
      w += pitch;
    }
    for (let b = 0; b < blocks; b++) {
      const block = rows + <usize>b * BLOCK_BYTES;
      for (let r: usize = 0; r < 8; r++) {
        const own = block + r * rowBytes;
        store<u16>(to + 2 * r, load<u16>(own));
        for (let pair: usize = 0; pair < 16; pair++)
          store<u16>(to + 16 + 16 * pair + 2 * r, load<u16>(own + 2 + 2 * pair));
      }
      to += PANEL_BLOCK;
    }
  }
}

/** Bytes of a row of inputs as `cutInputs` leaves it: 16 bits each, then the scales. */
@inline
function rowBytesOf(inputs: i32): usize {
  return (<usize>inputs << 1) + (<usize>(inputs / BLOCK) << 2);
}

/** Rows of f32 cut to 16 bits, to nearest even. NaN and infinity become scales that no sum survives. */
export function cutInputs(x: usize, pitch: usize, rows: i32, inputs: i32, to: usize): void {
  for (let r = 0; r < rows; r++) {
    let scales = to + (<usize>inputs << 1);
    let from = x;
    for (let b = 0; b < inputs; b += BLOCK) {
      let sizes = f32x4.splat(0);
      for (let i: usize = 0; i < 128; i += 16) sizes = f32x4.max(sizes, f32x4.abs(v128.load(from + i)));
      sizes = f32x4.max(sizes, v128.shuffle<u32>(sizes, sizes, 2, 3, 0, 1));
      sizes = f32x4.max(sizes, v128.shuffle<u32>(sizes, sizes, 1, 0, 3, 2));
      const most = f32x4.extract_lane(sizes, 0);
      const inverse = f32x4.splat(most == 0 ? 0 : 32767 / most);
      store<f32>(scales, most / 32767);
      scales += 4;
      for (let i: usize = 0; i < 128; i += 32) {
        const low = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(from + i), inverse)));
        const high = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(from + i, 16), inverse)));
        v128.store(to + (i >> 1), i16x8.narrow_i32x4_s(low, high));
      }
      from += 128;
      to += 64;
    }
    to = scales;
    x += pitch;
  }
}

/** Adds the sums of a block to what there is. */
@inline
function grow(sum: v128, block: v128, weights: v128, input: v128): v128 {
  return f32x4.add(sum, f32x4.mul(f32x4.convert_i32x4_s(block), f32x4.mul(weights, input)));
}

@inline
function pairs(sum: v128, w: usize, x: v128): v128 {
  return i32x4.add(sum, i32x4.dot_i16x8_s(v128.load_ext<i8>(w), x));
}

/** One row of inputs by one panel. */
function oneRow(x: usize, w: usize, inputs: i32, y: usize): void {
  let low = f32x4.splat(0);
  let high = low;
  let scale = x + (<usize>inputs << 1);
  for (const end = scale; x < end; ) {
    let a = i32x4.splat(0);
    let b = a;
    let at = w + 16;
    for (const stop = x + 64; x < stop; x += 4) {
      const p = v128.load32_splat(x);
      a = pairs(a, at, p);
      b = pairs(b, at + 8, p);
      at += 16;
    }
    const input = v128.load32_splat(scale);
    low = grow(low, a, wide4<i16>(w), input);
    high = grow(high, b, wide4<i16>(w + 8), input);
    scale += 4;
    w += PANEL_BLOCK;
  }
  put8(y, low, high);
}

/** Four rows of inputs by one panel. */
function fourRows(x: usize, w: usize, inputs: i32, y: usize, yPitch: usize): void {
  const pitch = rowBytesOf(inputs);
  let s = f32x4.splat(0);
  let t = s;
  let u = s;
  let v = s;
  let s1 = s;
  let t1 = s;
  let u1 = s;
  let v1 = s;
  let scale = x + (<usize>inputs << 1);
  for (const end = scale; x < end; ) {
    let a = i32x4.splat(0);
    let b = a;
    let c = a;
    let d = a;
    let a1 = a;
    let b1 = a;
    let c1 = a;
    let d1 = a;
    let at = w + 16;
    for (const stop = x + 64; x < stop; x += 4) {
      const low = v128.load_ext<i8>(at);
      const high = v128.load_ext<i8>(at, 8);
      let p = v128.load32_splat(x);
      a = i32x4.add(a, i32x4.dot_i16x8_s(low, p));
      a1 = i32x4.add(a1, i32x4.dot_i16x8_s(high, p));
      p = v128.load32_splat(x + pitch);
      b = i32x4.add(b, i32x4.dot_i16x8_s(low, p));
      b1 = i32x4.add(b1, i32x4.dot_i16x8_s(high, p));
      p = v128.load32_splat(x + 2 * pitch);
      c = i32x4.add(c, i32x4.dot_i16x8_s(low, p));
      c1 = i32x4.add(c1, i32x4.dot_i16x8_s(high, p));
      p = v128.load32_splat(x + 3 * pitch);
      d = i32x4.add(d, i32x4.dot_i16x8_s(low, p));
      d1 = i32x4.add(d1, i32x4.dot_i16x8_s(high, p));
      at += 16;
    }
    const low = wide4<i16>(w);
    const high = wide4<i16>(w + 8);
    let input = v128.load32_splat(scale);
    s = grow(s, a, low, input);
    s1 = grow(s1, a1, high, input);
    input = v128.load32_splat(scale + pitch);
    t = grow(t, b, low, input);
    t1 = grow(t1, b1, high, input);
    input = v128.load32_splat(scale + 2 * pitch);
    u = grow(u, c, low, input);
    u1 = grow(u1, c1, high, input);
    input = v128.load32_splat(scale + 3 * pitch);
    v = grow(v, d, low, input);
    v1 = grow(v1, d1, high, input);
    scale += 4;
    w += PANEL_BLOCK;
  }
  put8(y, s, s1);
  put8(y + yPitch, t, t1);
  put8(y + 2 * yPitch, u, u1);
  put8(y + 3 * yPitch, v, v1);
}

/**
 * Any number of rows by weights that `encodePanels` laid out; a row has the same bits whatever runs beside it.
 * @param x rows as `cutInputs` leaves them
 * @param bias [outputs], or 0
 */
export function matmulEncoded(
  w: usize,
  inputs: i32,
  outputs: i32,
  x: usize,
  rows: i32,
  bias: usize,
  y: usize,
  yPitch: usize,
  add: bool,
  scale: f32,
): void {
  const panelBytes = <usize>(inputs / BLOCK) * PANEL_BLOCK;
  const xPitch = rowBytesOf(inputs);
  for (let o = 0; o < outputs; o += 8) {
    aimSums(scale, add, bias ? bias + (<usize>o << 2) : 0, outputs - o);
    const to = y + (<usize>o << 2);
    let r = 0;
    for (; r + 4 <= rows; r += 4) fourRows(x + <usize>r * xPitch, w, inputs, to + <usize>r * yPitch, yPitch);
    for (; r < rows; r++) oneRow(x + <usize>r * xPitch, w, inputs, to + <usize>r * yPitch);
    w += panelBytes;
  }
}
