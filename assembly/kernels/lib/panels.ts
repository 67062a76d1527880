// Rows by panels of eight columns side by side: the sums of four rows at once, weights as they are stored, and how sums of a
// product go into y.

/** Sums that `fourByEight` leaves: of each of its rows the first four columns, and the last. */
export let low0: v128 = i32x4(0, 0, 0, 0);
export let high0: v128 = i32x4(0, 0, 0, 0);
export let low1: v128 = i32x4(0, 0, 0, 0);
export let high1: v128 = i32x4(0, 0, 0, 0);
export let low2: v128 = i32x4(0, 0, 0, 0);
export let high2: v128 = i32x4(0, 0, 0, 0);
export let low3: v128 = i32x4(0, 0, 0, 0);
export let high3: v128 = i32x4(0, 0, 0, 0);

/**
 * Σ row[k] · panel[k] over n terms, of four rows by eight columns.
 * @param step bytes from one term of a row to the next @param pitch bytes from one row of the panel to the next
 */
@inline
export function fourByEight(x0: usize, x1: usize, x2: usize, x3: usize, step: usize, panel: usize, pitch: usize, n: i32): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  let e = a;
  let f = a;
  let g = a;
  let h = a;
  const end = x0 + <usize>n * step;
  while (x0 < end) {
    const low = v128.load(panel);
    const high = v128.load(panel, 16);
    const p = v128.load32_splat(x0);
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
    x0 += step;
    x1 += step;
    x2 += step;
    x3 += step;
    panel += pitch;
  }
  low0 = a;
  high0 = b;
  low1 = c;
  high1 = d;
  low2 = e;
  high2 = f;
  low3 = g;
  high3 = h;
}

// How weights are stored, as a type, so that each dtype has loops of its own: f32 F32, i16 F16, u16 BF16.

/** Four stored weights from `at` on, as f32. */
@inline
export function wide4<T>(at: usize): v128 {
  if (isFloat<T>()) return v128.load(at);
  if (!isSigned<T>()) return v128.shuffle<u16>(i32x4.splat(0), v128.load64_zero(at), 0, 8, 1, 9, 2, 10, 3, 11);
  return widenF16(i32x4.shl(v128.load_ext<i16>(at), 13));
}

/** Four F16, sign-extended and shifted left by 13, as f32; whatever else is in the words does not matter. */
@inline
export function widenF16(shifted: v128): v128 {
  // sign, exponent and mantissa in their places; the product with 2^112 is exact and moves the exponent, subnormals too
  const moved = v128.and(shifted, i32x4.splat(0x8fffe000));
  const wide = f32x4.mul(moved, f32x4.splat(reinterpret<f32>(0x77800000)));
  const special = f32x4.gt(f32x4.abs(wide), f32x4.splat(65504));
  return v128.or(wide, v128.and(special, i32x4.splat(0x7f800000)));
}

// How sums go into y = add·y + bias + scale · sum.

let scaling: f32 = 1;
let adding: bool = false;
let biases: usize = 0;
let panelWidth: i32 = 8;

/** @param bias of the first output, or 0 @param width outputs of the panel that there are */
@inline
export function aimSums(scale: f32, add: bool, bias: usize, width: i32): void {
  scaling = scale;
  adding = add;
  biases = bias;
  panelWidth = width;
}

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

/** Eight sums of one row; fewer where the panel is narrower. @param offset bytes of y and bias to them */
export function put8(y: usize, low: v128, high: v128, offset: usize = 0): void {
  const bias = biases ? biases + offset : 0;
  const width = panelWidth - (<i32>offset >> 2);
  y += offset;
  if (width >= 8) {
    put4(y, bias, low);
    put4(y + 16, bias ? bias + 16 : 0, high);
    return;
  }
  if (width > 0) put1(y, bias, f32x4.extract_lane(low, 0));
  if (width > 1) put1(y + 4, bias ? bias + 4 : 0, f32x4.extract_lane(low, 1));
  if (width > 2) put1(y + 8, bias ? bias + 8 : 0, f32x4.extract_lane(low, 2));
  if (width > 3) put1(y + 12, bias ? bias + 12 : 0, f32x4.extract_lane(low, 3));
  if (width > 4) put1(y + 16, bias ? bias + 16 : 0, f32x4.extract_lane(high, 0));
  if (width > 5) put1(y + 20, bias ? bias + 20 : 0, f32x4.extract_lane(high, 1));
  if (width > 6) put1(y + 24, bias ? bias + 24 : 0, f32x4.extract_lane(high, 2));
}
