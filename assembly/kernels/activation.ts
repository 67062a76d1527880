import { exp4, gate4, geluErf4, geluTanh4, largest, plus4, putSome, softCap4, some, sumOf } from './lib/exponential';

// Norms of rows: shaders/activation/norm-line.wgsl. Sums in f64, the rest in f32.

/**
 * One norm of `width` (a multiple of 4) elements: (x − mean) / √(Σ(x − mean)² / width + ε) · (weight + shift) + bias.
 * @param centred subtract the mean; @param bias 0 for none
 */
export function normRow(x: usize, weight: usize, bias: usize, y: usize, width: i32, centred: bool, shift: f32, epsilon: f32): void {
  const bytes = <usize>width << 2;
  let mean: f32 = 0;
  if (centred) {
    let sums = f64x2.splat(0);
    for (let e: usize = 0; e < bytes; e += 16) sums = plus4(sums, v128.load(x + e));
    mean = <f32>(sumOf(sums) / <f64>width);
  }
  const mean4 = f32x4.splat(mean);
  let low = f64x2.splat(0);
  let high = low;
  for (let e: usize = 0; e < bytes; e += 16) {
    const d = f32x4.sub(v128.load(x + e), mean4);
    const a = f64x2.promote_low_f32x4(d);
    const b = f64x2.promote_low_f32x4(v128.shuffle<u32>(d, d, 2, 3, 2, 3));
    low = f64x2.add(low, f64x2.mul(a, a));
    high = f64x2.add(high, f64x2.mul(b, b));
  }
  const squares = sumOf(f64x2.add(low, high));
  const inverse = f32x4.splat(<f32>(1 / Math.sqrt(squares / <f64>width + <f64>epsilon)));
  const more = f32x4.splat(shift);
  for (let e: usize = 0; e < bytes; e += 16) {
    const d = f32x4.mul(f32x4.sub(v128.load(x + e), mean4), inverse);
    let v = f32x4.mul(d, f32x4.add(v128.load(weight + e), more));
    if (bias) v = f32x4.add(v, v128.load(bias + e));
    v128.store(y + e, v);
  }
}

// Activations of rows: shaders/activation/activate.wgsl. An element’s bits depend on itself alone.

@inline
function apply(kind: i32, v: v128): v128 {
  if (kind == 0) return gate4(v, v);
  if (kind == 1) return geluErf4(v);
  if (kind == 2) return geluTanh4(v);
  return f32x4.pmax(v, f32x4.splat(0));
}

/** One row; `kind` and `gated` are known when this is compiled. */
@inline
function row(x: usize, y: usize, inner: i32, gated: bool, kind: i32): void {
  const bytes = <usize>inner << 2;
  const whole = bytes & ~15;
  for (let e: usize = 0; e < whole; e += 16) {
    let v = apply(kind, v128.load(x + e));
    if (gated) v = f32x4.mul(v, v128.load(x + bytes + e));
    v128.store(y + e, v);
  }
  const rest = inner & 3;
  if (!rest) return;
  let v = apply(kind, some(x + whole, rest, 0));
  if (gated) v = f32x4.mul(v, some(x + bytes + whole, rest, 0));
  putSome(y + whole, rest, v);
}

/** y = f(x), times the second half of x's row where gated. kind: 0 SiLU, 1 exact GELU, 2 tanh GELU, 3 ReLU. */
export function activateRow(x: usize, y: usize, inner: i32, gated: bool, kind: i32): void {
  if (gated) {
    if (kind == 0) row(x, y, inner, true, 0);
    else if (kind == 1) row(x, y, inner, true, 1);
    else if (kind == 2) row(x, y, inner, true, 2);
    else row(x, y, inner, true, 3);
  } else if (kind == 0) row(x, y, inner, false, 0);
  else if (kind == 1) row(x, y, inner, false, 1);
  else if (kind == 2) row(x, y, inner, false, 2);
  else row(x, y, inner, false, 3);
}

// Soft caps: shaders/activation/cap-logits.wgsl.

/** x = cap · tanh(factor · x / cap), without the cap where it is 0. */
export function capLogits(x: usize, n: i32, factor: f32, cap: f32): void {
  const scale = f32x4.splat(factor);
  const end = x + (<usize>(n & ~3) << 2);
  let p = x;
  for (; p < end; p += 16) {
    const v = f32x4.mul(v128.load(p), scale);
    v128.store(p, cap > 0 ? softCap4(v, cap) : v);
  }
  const rest = n & 3;
  if (!rest) return;
  const v = f32x4.mul(some(p, rest, 0), scale);
  putSome(p, rest, cap > 0 ? softCap4(v, cap) : v);
}

// Partial log-sum-exps of logits: shaders/activation/log-sum.wgsl. Exponentials in f32 (lib/exponential.ts), their sums in f64.

/** Columns of one partial log-sum-exp. */
const SEGMENT: i32 = 1024;
const NOTHING: f32 = -Infinity;

/** (max, Σ e^(x − max)) of every 1024 of `columns` logits, two f32 each, at `sums`. */
export function logSumRow(row: usize, columns: i32, sums: usize): void {
  for (let begin = 0; begin < columns; begin += SEGMENT, sums += 8) {
    const n = min(SEGMENT, columns - begin);
    const at = row + (<usize>begin << 2);
    const whole = at + (<usize>(n & ~3) << 2);
    const rest = n & 3;
    let tops = rest ? some(whole, rest, NOTHING) : f32x4.splat(NOTHING);
    for (let p = at; p < whole; p += 16) tops = f32x4.pmax(tops, v128.load(p));
    const top = largest(tops);
    const tops4 = f32x4.splat(top);
    let total = f64x2.splat(0);
    for (let p = at; p < whole; p += 16) total = plus4(total, exp4(f32x4.sub(v128.load(p), tops4)));
    if (rest) total = plus4(total, exp4(f32x4.sub(some(whole, rest, NOTHING), tops4)));
    store<f32>(sums, top);
    store<f32>(sums, <f32>sumOf(total), 4);
  }
}
