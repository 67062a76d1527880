// Partial log-sum-exps of logits: shaders/log-sum.wgsl. Exponentials in f32 (lib/exponential.ts), their sums in f64.
import { exp4, largest, plus4, some, sumOf } from './lib/exponential';

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
