
// The linear layer y = add·y + bias + scale · x·wᵀ with f32 sums: shaders/lib/matmul.wgsl. Weights are widened when they
// are packed into panels of eight outputs, [k][8]; a panel stays in the first cache while all rows of x pass it in fours.

/** Inputs of a panel: 8 KiB of scratch. A longer sum is split into pieces, each added to y, which is also more accurate. */
const PANEL_INPUTS: i32 = 256;

// How weights are stored, as a type, so that each dtype has loops of its own: f32 F32, i16 F16, u16 BF16.

/** Four stored weights from `at` on, as f32. */
@inline
function wide4<T>(at: usize): v128 {
  if (isFloat<T>()) return v128.load(at);
  if (!isSigned<T>()) return v128.shuffle<u16>(i32x4.splat(0), v128.load64_zero(at), 0, 8, 1, 9, 2, 10, 3, 11);
  // sign, exponent and mantissa in their places; the product with 2^112 is exact and moves the exponent, subnormals too
  const moved = v128.and(i32x4.shl(v128.load_ext<i16>(at), 13), i32x4.splat(0x8fffe000));
  const wide = f32x4.mul(moved, f32x4.splat(reinterpret<f32>(0x77800000)));
  const special = f32x4.gt(f32x4.abs(wide), f32x4.splat(65504));
  return v128.or(wide, v128.and(special, i32x4.splat(0x7f800000)));
}

/** Four weight rows transposed: [n][4] at `to`, rows of the panel 32 bytes apart. */
function packFour<T>(w0: usize, w1: usize, w2: usize, w3: usize, to: usize, n: i32): void {
  const step = 4 * sizeof<T>();
  for (let k = 0; k < n; k += 4) {
    const a = wide4<T>(w0);
    const b = wide4<T>(w1);
    const c = wide4<T>(w2);
    const d = wide4<T>(w3);
    const e = v128.shuffle<u32>(a, b, 0, 4, 1, 5);
    const f = v128.shuffle<u32>(c, d, 0, 4, 1, 5);
    const g = v128.shuffle<u32>(a, b, 2, 6, 3, 7);
    const h = v128.shuffle<u32>(c, d, 2, 6, 3, 7);
    v128.store(to, v128.shuffle<u64>(e, f, 0, 2));
    v128.store(to, v128.shuffle<u64>(e, f, 1, 3), 32);
    v128.store(to, v128.shuffle<u64>(g, h, 0, 2), 64);
    v128.store(to, v128.shuffle<u64>(g, h, 1, 3), 96);
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

/** How sums go into y. */
let scaling: f32 = 1;
let adding: bool = false;
let biases: usize = 0;
let panelWidth: i32 = 8;

@inline
function put4(y: usize, bias: usize, sum: v128): void {
  let v = f32x4.mul(sum, f32x4.splat(scaling));
  if (bias) v = f32x4.add(v, v128.load(bias));
  if (adding) v = f32x4.add(v, v128.load(y));
  v128.store(y, v);
}

@inline
function put1(y: usize, bias: usize, sum: f32): void {
  let v: f32 = sum * scaling;
  if (bias) v += load<f32>(bias);
  if (adding) v += load<f32>(y);
  store<f32>(y, v);
}

/** Eight sums of one row; fewer where the panel is narrower. */
function put8(y: usize, low: v128, high: v128): void {
  const bias = biases;
  if (panelWidth == 8) {
    put4(y, bias, low);
    put4(y + 16, bias ? bias + 16 : 0, high);
    return;
  }
  const width = panelWidth;
  put1(y, bias, f32x4.extract_lane(low, 0));
  if (width > 1) put1(y + 4, bias ? bias + 4 : 0, f32x4.extract_lane(low, 1));
  if (width > 2) put1(y + 8, bias ? bias + 8 : 0, f32x4.extract_lane(low, 2));
  if (width > 3) put1(y + 12, bias ? bias + 12 : 0, f32x4.extract_lane(low, 3));
  if (width > 4) put1(y + 16, bias ? bias + 16 : 0, f32x4.extract_lane(high, 0));
  if (width > 5) put1(y + 20, bias ? bias + 20 : 0, f32x4.extract_lane(high, 1));
  if (width > 6) put1(y + 24, bias ? bias + 24 : 0, f32x4.extract_lane(high, 2));
}

/** Four rows of x by a panel. */
function fourRows(x: usize, xPitch: usize, panel: usize, n: i32, y: usize, yPitch: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  let e = a;
  let f = a;
  let g = a;
  let h = a;
  let x1 = x + xPitch;
  let x2 = x1 + xPitch;
  let x3 = x2 + xPitch;
  const end = x + (<usize>n << 2);
  while (x < end) {
    const low = v128.load(panel);
    const high = v128.load(panel, 16);
    const p = v128.load32_splat(x);
    a = f32x4.add(a, f32x4.mul(p, low));
    b = f32x4.add(b, f32x4.mul(p, high));
    const q = v128.load32_splat(x1);
    c = f32x4.add(c, f32x4.mul(q, low));
    d = f32x4.add(d, f32x4.mul(q, high));
    const r = v128.load32_splat(x2);
    e = f32x4.add(e, f32x4.mul(r, low));
    f = f32x4.add(f, f32x4.mul(r, high));
    const s = v128.load32_splat(x3);
    g = f32x4.add(g, f32x4.mul(s, low));
    h = f32x4.add(h, f32x4.mul(s, high));
    x += 4;
    x1 += 4;
    x2 += 4;
    x3 += 4;
    panel += 32;
  }
  put8(y, a, b);
  put8(y + yPitch, c, d);
  put8(y + 2 * yPitch, e, f);
  put8(y + 3 * yPitch, g, h);
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
  scaling = scale;
  for (let k = 0; k < inputs; k += PANEL_INPUTS) {
    const n = min(PANEL_INPUTS, inputs - k);
    adding = add || k > 0;
    for (let o = 0; o < outputs; o += 8) {
      panelWidth = min(8, outputs - o);
      biases = bias && k == 0 ? bias + (<usize>o << 2) : 0;
      const from = w + <usize>o * wPitch + <usize>k * width;
      if (dtype == 0) pack<f32>(from, wPitch, panelWidth, scratch, n);
      else if (dtype == 1) pack<i16>(from, wPitch, panelWidth, scratch, n);
      else pack<u16>(from, wPitch, panelWidth, scratch, n);
      let r = 0;
      let xr = x + (<usize>k << 2);
      let yr = y + (<usize>o << 2);
      for (; r + 4 <= rows; r += 4) {
        fourRows(xr, xPitch, scratch, n, yr, yPitch);
        xr += 4 * xPitch;
        yr += 4 * yPitch;
      }
      for (; r < rows; r++) {
        oneRow(xr, scratch, n, yr);
        xr += xPitch;
        yr += yPitch;
      }
    }
  }
}

// Weights that stay are laid out for this once: eight outputs [k][8] at a time, each panel where its rows were. Without a
// transposition, and with four panels side by side, a row costs half as much; sums run in the same order.

/** Eight rows from `w` on, `pitch` apart, as [n][8] at `to`. */
function interleave<T>(w: usize, pitch: usize, to: usize, n: i32): void {
  if (isFloat<T>()) {
    packFour<T>(w, w + pitch, w + 2 * pitch, w + 3 * pitch, to, n);
    packFour<T>(w + 4 * pitch, w + 5 * pitch, w + 6 * pitch, w + 7 * pitch, to + 16, n);
    return;
  }
  const end = w + (<usize>n << 1);
  for (; w < end; w += 8) {
    let at = w;
    const a = v128.load64_zero(at);
    at += pitch;
    const b = v128.load64_zero(at);
    at += pitch;
    const c = v128.load64_zero(at);
    at += pitch;
    const d = v128.load64_zero(at);
    at += pitch;
    const e = v128.load64_zero(at);
    at += pitch;
    const f = v128.load64_zero(at);
    at += pitch;
    const g = v128.load64_zero(at);
    at += pitch;
    const h = v128.load64_zero(at);
    const ab = v128.shuffle<u16>(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    const cd = v128.shuffle<u16>(c, d, 0, 8, 1, 9, 2, 10, 3, 11);
    const ef = v128.shuffle<u16>(e, f, 0, 8, 1, 9, 2, 10, 3, 11);
    const gh = v128.shuffle<u16>(g, h, 0, 8, 1, 9, 2, 10, 3, 11);
    const low0 = v128.shuffle<u32>(ab, cd, 0, 4, 1, 5);
    const low1 = v128.shuffle<u32>(ef, gh, 0, 4, 1, 5);
    const high0 = v128.shuffle<u32>(ab, cd, 2, 6, 3, 7);
    const high1 = v128.shuffle<u32>(ef, gh, 2, 6, 3, 7);
    v128.store(to, v128.shuffle<u64>(low0, low1, 0, 2));
    v128.store(to, v128.shuffle<u64>(low0, low1, 1, 3), 16);
    v128.store(to, v128.shuffle<u64>(high0, high1, 0, 2), 32);
    v128.store(to, v128.shuffle<u64>(high0, high1, 1, 3), 48);
    to += 64;
  }
}

/**
 * Lays out a matrix in place.
 * @param w `outputs` rows of `inputs` stored elements; the last panel is as long as the others, whatever is behind its rows
 * @param room for eight rows
 */
export function packPanels(w: usize, dtype: i32, inputs: i32, outputs: i32, room: usize): void {
  const pitch = <usize>inputs * (dtype == 0 ? 4 : 2);
  for (let o = 0; o < outputs; o += 8) {
    memory.copy(room, w, 8 * pitch);
    if (dtype == 0) interleave<f32>(room, pitch, w, inputs);
    else interleave<u16>(room, pitch, w, inputs);
    w += 8 * pitch;
  }
}

/** The second four of eight stored weights, as f32. */
@inline
function wideHigh<T>(at: usize): v128 {
  return wide4<T>(at + 4 * sizeof<T>());
}

/** A panel widened. */
function widen<T>(w: usize, to: usize, n: i32): void {
  const end = to + (<usize>n << 5);
  for (; to < end; to += 32) {
    v128.store(to, wide4<T>(w));
    v128.store(to, wideHigh<T>(w), 16);
    w += 8 * sizeof<T>();
  }
}

/** One row of x by a panel as it is laid out. */
function onePanel<T>(x: usize, w: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  const end = x + (<usize>n << 2);
  for (; x < end; x += 4) {
    const p = v128.load32_splat(x);
    a = f32x4.add(a, f32x4.mul(p, wide4<T>(w)));
    b = f32x4.add(b, f32x4.mul(p, wideHigh<T>(w)));
    w += 8 * sizeof<T>();
  }
  put8(y, a, b);
}

/** The same by four whole panels, `pitch` apart: their sums do not wait for one another. */
function fourPanels<T>(x: usize, w: usize, pitch: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  let e = a;
  let f = a;
  let g = a;
  let h = a;
  let w1 = w + pitch;
  let w2 = w1 + pitch;
  let w3 = w2 + pitch;
  const end = x + (<usize>n << 2);
  for (; x < end; x += 4) {
    const p = v128.load32_splat(x);
    a = f32x4.add(a, f32x4.mul(p, wide4<T>(w)));
    b = f32x4.add(b, f32x4.mul(p, wideHigh<T>(w)));
    c = f32x4.add(c, f32x4.mul(p, wide4<T>(w1)));
    d = f32x4.add(d, f32x4.mul(p, wideHigh<T>(w1)));
    e = f32x4.add(e, f32x4.mul(p, wide4<T>(w2)));
    f = f32x4.add(f, f32x4.mul(p, wideHigh<T>(w2)));
    g = f32x4.add(g, f32x4.mul(p, wide4<T>(w3)));
    h = f32x4.add(h, f32x4.mul(p, wideHigh<T>(w3)));
    w += 8 * sizeof<T>();
    w1 += 8 * sizeof<T>();
    w2 += 8 * sizeof<T>();
    w3 += 8 * sizeof<T>();
  }
  const bias = biases;
  put8(y, a, b);
  if (bias) biases = bias + 32;
  put8(y + 32, c, d);
  if (bias) biases = bias + 64;
  put8(y + 64, e, f);
  if (bias) biases = bias + 96;
  put8(y + 96, g, h);
  biases = bias;
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
  scratch: usize,
): void {
  const panelBytes = 8 * <usize>inputs * sizeof<T>();
  for (let o = 0; o < outputs; ) {
    const four = rows <= FEW_ROWS && o + 32 <= outputs;
    panelWidth = min(8, outputs - o);
    for (let k = 0; k < inputs; k += PANEL_INPUTS) {
      const n = min(PANEL_INPUTS, inputs - k);
      adding = add || k > 0;
      biases = bias && k == 0 ? bias + (<usize>o << 2) : 0;
      const from = w + <usize>k * 8 * sizeof<T>();
      let xr = x + (<usize>k << 2);
      let yr = y + (<usize>o << 2);
      let r = 0;
      if (rows <= FEW_ROWS) {
        for (; r < rows; r++) {
          if (four) fourPanels<T>(xr, from, panelBytes, n, yr);
          else onePanel<T>(xr, from, n, yr);
          xr += xPitch;
          yr += yPitch;
        }
        continue;
      }
      widen<T>(from, scratch, n);
      for (; r + 4 <= rows; r += 4) {
        fourRows(xr, xPitch, scratch, n, yr, yPitch);
        xr += 4 * xPitch;
        yr += 4 * yPitch;
      }
      for (; r < rows; r++) {
        oneRow(xr, scratch, n, yr);
        xr += xPitch;
        yr += yPitch;
      }
    }
    o += four ? 32 : 8;
    w += four ? 4 * panelBytes : panelBytes;
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
  scaling = scale;
  if (dtype == 0) multiplyPacked<f32>(w, inputs, outputs, x, xPitch, rows, bias, y, yPitch, add, scratch);
  else if (dtype == 1) multiplyPacked<i16>(w, inputs, outputs, x, xPitch, rows, bias, y, yPitch, add, scratch);
  else multiplyPacked<u16>(w, inputs, outputs, x, xPitch, rows, bias, y, yPitch, add, scratch);
}
