// Norms of rows: shaders/norm-line.wgsl. Sums in f64, the rest in f32.
import { plus4, sumOf } from './lib/exponential';

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
