// Soft caps: shaders/cap-logits.wgsl.
import { putSome, softCap4, some } from './lib/exponential';

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
