// τ = W − W₀: shaders/subtract.wgsl.
import { flush, flushOne } from './lib/lanes';

/** τ ← τ − W₀. */
export function subtract(values: usize, base: usize, n: i32): void {
  let e: usize = 0;
  const end = <usize>n << 2;
  for (; e + 16 <= end; e += 16) {
    v128.store(values + e, flush(f32x4.sub(v128.load(values + e), v128.load(base + e))));
  }
  for (; e < end; e += 4) {
    store<f32>(values + e, flushOne(load<f32>(values + e) - load<f32>(base + e)));
  }
}
