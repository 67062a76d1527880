import { transpose4 } from './lib/lanes';
import { aimSums, fourByEight, high0, high1, high2, high3, low0, low1, low2, low3, put8, wide4, widenF16 } from './lib/panels';

export { cutInputs, encodePanels, matmulEncoded } from './lib/encoded-panels';

// The linear layer y = add·y + bias + scale · x·wᵀ with f32 sums: shaders/lib/matmul.wgsl. Weights are widened when they
// are packed into panels of eight outputs, [k][8]; a panel stays in the first cache while all rows of x pass it in fours.

/** Inputs of a panel: 8 KiB of scratch. A longer sum is split into pieces, each added to y, which is also more accurate. */
const PANEL_INPUTS: i32 = 256;

/** Four weight rows transposed: [n][4] at `to`, rows of the panel 32 bytes apart. */
function packFour<T>(w0: usize, w1: usize, w2: usize, w3: usize, to: usize, n: i32): void {
  const step = 4 * sizeof<T>();
  for (let k = 0; k < n; k += 4) {
    transpose4(wide4<T>(w0), wide4<T>(w1), wide4<T>(w2), wide4<T>(w3), to, 32);
    w0 += step;
    w1 += step;
    w2 += step;
    w3 += step;
    to += 128;
  }
}

/** A panel of eight weight rows from `w` on; beyond `width` of them the last is taken again. */
function pack<T>(w: usize, pitch: usize, width: i32, to: usize, n: i32): void {
  const last = <usize>(width - 1);
  packFour<T>(w, w + pitch * min(1, last), w + pitch * min(2, last), w + pitch * min(3, last), to, n);
  w += pitch * min(4, last);
  const left = last - min(4, last);
  packFour<T>(w, w + pitch * min(1, left), w + pitch * min(2, left), w + pitch * min(3, left), to + 16, n);
}

/** Four rows of x by a panel. */
function fourRows(x: usize, xPitch: usize, panel: usize, n: i32, y: usize, yPitch: usize): void {
  fourByEight(x, x + xPitch, x + 2 * xPitch, x + 3 * xPitch, 4, panel, 32, n);
  put8(y, low0, high0);
  put8(y + yPitch, low1, high1);
  put8(y + 2 * yPitch, low2, high2);
  put8(y + 3 * yPitch, low3, high3);
}

/** One row of x by a panel. */
function oneRow(x: usize, panel: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  const end = x + (<usize>n << 2);
  for (; x < end; x += 4) {
    const p = v128.load32_splat(x);
    a = f32x4.add(a, f32x4.mul(p, v128.load(panel)));
    b = f32x4.add(b, f32x4.mul(p, v128.load(panel, 16)));
    panel += 32;
  }
  put8(y, a, b);
}

/** Every row of x by a panel, in fours. */
function allRows(x: usize, xPitch: usize, rows: i32, panel: usize, n: i32, y: usize, yPitch: usize): void {
  let r = 0;
  for (; r + 4 <= rows; r += 4) {
    fourRows(x, xPitch, panel, n, y, yPitch);
    x += 4 * xPitch;
    y += 4 * yPitch;
  }
  for (; r < rows; r++) {
    oneRow(x, panel, n, y);
    x += xPitch;
    y += yPitch;
  }
}

/**
 * Many rows.
 * @param w first weight row, `outputs` of them, `inputs` (a multiple of 4) stored elements each
 * @param y first element, rows `yPitch` bytes apart
 * @param bias [outputs], or 0
 */
export function matmulBlock(
  w: usize,
  dtype: i32,
  inputs: i32,
  outputs: i32,
  x: usize,
  xPitch: usize,
  rows: i32,
  bias: usize,
  y: usize,
  yPitch: usize,
  add: bool,
  scale: f32,
  scratch: usize,
): void {
  const width: usize = dtype == 0 ? 4 : 2;
  const wPitch = <usize>inputs * width;
  for (let k = 0; k < inputs; k += PANEL_INPUTS) {
    const n = min(PANEL_INPUTS, inputs - k);
    for (let o = 0; o < outputs; o += 8) {
      const panelWidth = min(8, outputs - o);
      aimSums(scale, add || k > 0, bias && k == 0 ? bias + (<usize>o << 2) : 0, panelWidth);
      const from = w + <usize>o * wPitch + <usize>k * width;
      if (dtype == 0) pack<f32>(from, wPitch, panelWidth, scratch, n);
      else if (dtype == 1) pack<i16>(from, wPitch, panelWidth, scratch, n);
      else pack<u16>(from, wPitch, panelWidth, scratch, n);
      allRows(x + (<usize>k << 2), xPitch, rows, scratch, n, y + (<usize>o << 2), yPitch);
    }
  }
}

// Weights that stay are laid out for this once: 32 outputs [k][32] at a time, each panel where its rows were. Without a
// transposition, and read from front to back, a row costs half as much; sums run in the same order.

/** Outputs of a panel that stays. */
const OUTPUTS: i32 = 32;

/**
 * Eight rows from `w` on, `pitch` apart, as [n][8] at `to`, where a row has 32. Of two bytes each, output i and output i + 4 are
 * one word: either becomes f32 by what whole words are put through.
 */
function interleave<T>(w: usize, pitch: usize, to: usize, n: i32): void {
  const step = OUTPUTS * sizeof<T>();
  const end = w + <usize>n * sizeof<T>();
  const four = 4 * sizeof<T>();
  for (; w < end; w += four) {
    let at = w;
    const a = load4<T>(at);
    at += pitch;
    const b = load4<T>(at);
    at += pitch;
    const c = load4<T>(at);
    at += pitch;
    const d = load4<T>(at);
    at += pitch;
    const e = load4<T>(at);
    at += pitch;
    const f = load4<T>(at);
    at += pitch;
    const g = load4<T>(at);
    at += pitch;
    const h = load4<T>(at);
    if (isFloat<T>()) {
      transpose4(a, b, c, d, to, step);
      transpose4(e, f, g, h, to + 16, step);
    } else {
      const ae = v128.shuffle<u16>(a, e, 0, 8, 1, 9, 2, 10, 3, 11);
      const bf = v128.shuffle<u16>(b, f, 0, 8, 1, 9, 2, 10, 3, 11);
      const cg = v128.shuffle<u16>(c, g, 0, 8, 1, 9, 2, 10, 3, 11);
      const dh = v128.shuffle<u16>(d, h, 0, 8, 1, 9, 2, 10, 3, 11);
      transpose4(ae, bf, cg, dh, to, step);
    }
    to += 4 * step;
  }
}

/** Four stored weights as they are. */
@inline
function load4<T>(at: usize): v128 {
  return isFloat<T>() ? v128.load(at) : v128.load64_zero(at);
}

/**
 * Lays out a matrix in place.
 * @param w `outputs` rows of `inputs` stored elements; the last panel is as long as the others, whatever is behind its rows
 * @param room for 32 rows
 */
export function packPanels(w: usize, dtype: i32, inputs: i32, outputs: i32, room: usize): void {
  const pitch = <usize>inputs * (dtype == 0 ? 4 : 2);
  for (let o = 0; o < outputs; o += OUTPUTS) {
    memory.copy(room, w, OUTPUTS * pitch);
    for (let eight: usize = 0; eight < 4; eight++) {
      const from = room + 8 * eight * pitch;
      if (dtype == 0) interleave<f32>(from, pitch, w + 32 * eight, inputs);
      else interleave<u16>(from, pitch, w + 16 * eight, inputs);
    }
    w += OUTPUTS * pitch;
  }
}

/** The first four of eight stored weights, of which `v` is the beginning, as f32. */
@inline
function low4<T>(v: v128): v128 {
  if (isFloat<T>()) return v;
  if (!isSigned<T>()) return i32x4.shl(v, 16);
  return widenF16(i32x4.shr_s(i32x4.shl(v, 16), 3));
}

/** The other four. */
@inline
function high4<T>(v: v128, at: usize): v128 {
  if (isFloat<T>()) return v128.load(at, 16);
  if (!isSigned<T>()) return v128.and(v, i32x4.splat(0xffff0000));
  return widenF16(i32x4.shr_s(v, 3));
}

/** Eight outputs of a panel widened. */
function widen<T>(w: usize, to: usize, n: i32): void {
  const end = to + (<usize>n << 5);
  for (; to < end; to += 32) {
    const v = v128.load(w);
    v128.store(to, low4<T>(v));
    v128.store(to, high4<T>(v, w), 16);
    w += OUTPUTS * sizeof<T>();
  }
}

/** One row of x by a panel as it is laid out: eight sums that do not wait for one another. */
function onePanel<T>(x: usize, w: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  let e = a;
  let f = a;
  let g = a;
  let h = a;
  const end = x + (<usize>n << 2);
  for (; x < end; x += 4) {
    const p = v128.load32_splat(x);
    let v = v128.load(w);
    a = f32x4.add(a, f32x4.mul(p, low4<T>(v)));
    b = f32x4.add(b, f32x4.mul(p, high4<T>(v, w)));
    w += 8 * sizeof<T>();
    v = v128.load(w);
    c = f32x4.add(c, f32x4.mul(p, low4<T>(v)));
    d = f32x4.add(d, f32x4.mul(p, high4<T>(v, w)));
    w += 8 * sizeof<T>();
    v = v128.load(w);
    e = f32x4.add(e, f32x4.mul(p, low4<T>(v)));
    f = f32x4.add(f, f32x4.mul(p, high4<T>(v, w)));
    w += 8 * sizeof<T>();
    v = v128.load(w);
    g = f32x4.add(g, f32x4.mul(p, low4<T>(v)));
    h = f32x4.add(h, f32x4.mul(p, high4<T>(v, w)));
    w += 8 * sizeof<T>();
  }
  put8(y, a, b);
  put8(y, c, d, 32);
  put8(y, e, f, 64);
  put8(y, g, h, 96);
}

/** Rows up to which panels are read where they lie. */
const FEW_ROWS: i32 = 2;

function multiplyPacked<T>(
  w: usize,
  inputs: i32,
  outputs: i32,
  x: usize,
  xPitch: usize,
  rows: i32,
  bias: usize,
  y: usize,
  yPitch: usize,
  add: bool,
  scale: f32,
  scratch: usize,
): void {
  const rowBytes = OUTPUTS * sizeof<T>();
  const panelBytes = <usize>inputs * rowBytes;
  if (rows <= FEW_ROWS) {
    // weights are read once, from front to back
    for (let o = 0; o < outputs; o += OUTPUTS) {
      for (let k = 0; k < inputs; k += PANEL_INPUTS) {
        const n = min(PANEL_INPUTS, inputs - k);
        aimSums(scale, add || k > 0, bias && k == 0 ? bias + (<usize>o << 2) : 0, outputs - o);
        for (let r = 0; r < rows; r++) {
          const xr = x + <usize>r * xPitch + (<usize>k << 2);
          onePanel<T>(xr, w + <usize>k * rowBytes, n, y + <usize>r * yPitch + (<usize>o << 2));
        }
      }
      w += panelBytes;
    }
    return;
  }
  // a stretch of the inputs of all rows stays in the cache
  for (let k = 0; k < inputs; k += PANEL_INPUTS) {
    const n = min(PANEL_INPUTS, inputs - k);
    for (let o = 0; o < outputs; o += 8) {
      const from = w + <usize>(o / OUTPUTS) * panelBytes + <usize>k * rowBytes + <usize>(o % OUTPUTS) * sizeof<T>();
      aimSums(scale, add || k > 0, bias && k == 0 ? bias + (<usize>o << 2) : 0, outputs - o);
      widen<T>(from, scratch, n);
      allRows(x + (<usize>k << 2), xPitch, rows, scratch, n, y + (<usize>o << 2), yPitch);
    }
  }
}

/** Any number of rows by weights that `packPanels` laid out. Same parameters, and the same bits a row as above. */
export function matmulPacked(
  w: usize,
  dtype: i32,
  inputs: i32,
  outputs: i32,
  x: usize,
  xPitch: usize,
  rows: i32,
  bias: usize,
  y: usize,
  yPitch: usize,
  add: bool,
  scale: f32,
  scratch: usize,
): void {
  if (dtype == 0) multiplyPacked<f32>(w, inputs, outputs, x, xPitch, rows, bias, y, yPitch, add, scale, scratch);
  else if (dtype == 1) multiplyPacked<i16>(w, inputs, outputs, x, xPitch, rows, bias, y, yPitch, add, scale, scratch);
  else multiplyPacked<u16>(w, inputs, outputs, x, xPitch, rows, bias, y, yPitch, add, scale, scratch);
}
