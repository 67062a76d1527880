// Σ c·v: shaders/weighted-sum.wgsl.
import { flush } from './lib/lanes';

/** δ + c·(v − a), or δ + c·v, as four lanes. */
@inline
function addScaled(delta: v128, v: v128, anchor: v128, c: f32, affine: bool): v128 {
  const x = affine ? flush(f32x4.sub(v, anchor)) : v;
  return flush(f32x4.add(delta, flush(f32x4.mul(x, f32x4.splat(c)))));
}

/**
 * b·a + Σ cᵢ·(vᵢ − k·a) over `count` vectors `stride` bytes apart, the one numbered `anchor` being a.
 * `table`: b, k, c₀, c₁, …
 */
export function weightedSum(
  values: usize,
  stride: usize,
  count: i32,
  anchor: i32,
  table: usize,
  out: usize,
  n: i32,
): void {
  const b = load<f32>(table);
  const affine = load<f32>(table, 4) == 1;
  const a = values + <usize>anchor * stride;
  const zero = f32x4.splat(0);
  for (let e = 0; e < n; e += 4) {
    const at = <usize>e << 2;
    // the last vector may reach beyond n: a buffer has room for whole blocks
    const base = v128.load(a + at);
    let delta = zero;
    for (let i = 0; i < count; i++) {
      const c = load<f32>(table + (<usize>(i + 2) << 2));
      if (i == anchor || c == 0) continue;
      delta = addScaled(delta, v128.load(values + <usize>i * stride + at), base, c, affine);
    }
    const start = b == 1 ? base : b == 0 ? zero : flush(f32x4.mul(base, f32x4.splat(b)));
    const sum = flush(f32x4.add(start, delta));
    v128.store(out + at, v128.bitselect(start, sum, f32x4.eq(delta, zero)));
  }
}
