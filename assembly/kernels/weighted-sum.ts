// Σ c·v: shaders/weighted-sum.wgsl. Where no vector and no coefficient is small (lanes.ts) nothing on the way is subnormal.
import { hasSmall, rounded } from './lib/lanes';

/** c·(v − a), or c·v, as four lanes. */
@inline
function scaled(v: v128, anchor: v128, c: v128, affine: bool, small: bool): v128 {
  const x = affine ? rounded(f32x4.sub(v, anchor), small) : v;
  return rounded(f32x4.mul(x, c), small);
}

/** b·a, and 0 for b = 0 whatever a is: `some` is then 0, else all bits. */
@inline
function started(a: v128, b: v128, some: v128, small: bool): v128 {
  return v128.and(rounded(f32x4.mul(a, b), small), some);
}

/** start + δ; a δ of zero is added as −0, which leaves every start its bits. */
@inline
function changed(start: v128, delta: v128, small: bool): v128 {
  const change = v128.or(delta, v128.and(f32x4.eq(delta, f32x4.splat(0)), i32x4.splat(0x80000000)));
  return rounded(f32x4.add(start, change), small);
}

// the last vectors of the loops may reach beyond n: a buffer has room for whole blocks

@inline
function sumAll(
  values: usize,
  stride: usize,
  count: i32,
  anchor: i32,
  table: usize,
  affine: bool,
  out: usize,
  n: i32,
  small: bool,
): void {
  const a = values + <usize>anchor * stride;
  const own = v128.load32_splat(table);
  const zero = f32x4.splat(0);
  const some = f32x4.ne(own, zero);
  for (let e = 0; e < n; e += 4) {
    const at = <usize>e << 2;
    const base = v128.load(a + at);
    let delta = zero;
    for (let i = 0; i < count; i++) {
      const c = table + (<usize>(i + 2) << 2);
      if (i == anchor || load<f32>(c) == 0) continue;
      const term = scaled(v128.load(values + <usize>i * stride + at), base, v128.load32_splat(c), affine, small);
      delta = rounded(f32x4.add(delta, term), small);
    }
    v128.store(out + at, changed(started(base, own, some, small), delta, small));
  }
}

/** Of two vectors. */
@inline
function sumTwo(a: usize, v: usize, own: v128, c: v128, affine: bool, out: usize, n: i32): void {
  const some = f32x4.ne(own, f32x4.splat(0));
  for (let e: usize = 0; e < <usize>n << 2; e += 16) {
    const base = v128.load(a + e);
    const delta = scaled(v128.load(v + e), base, c, affine, false);
    v128.store(out + e, changed(started(base, own, some, false), delta, false));
  }
}

/**
 * b·a + Σ cᵢ·(vᵢ − k·a) over `count` vectors `stride` bytes apart, the one numbered `anchor` being a.
 * `table`: b, k, c₀, c₁, …; `extreme`: one of them is small.
 */
export function weightedSum(
  values: usize,
  stride: usize,
  count: i32,
  anchor: i32,
  table: usize,
  extreme: bool,
  out: usize,
  n: i32,
): void {
  const affine = load<f32>(table, 4) == 1;
  let small = extreme;
  for (let i = 0; i < count && !small; i++) small = hasSmall(values + <usize>i * stride, n);
  const other = 1 - anchor;
  if (small) sumAll(values, stride, count, anchor, table, affine, out, n, true);
  else if (count == 2 && load<f32>(table + (<usize>(other + 2) << 2)) != 0) {
    const a = values + <usize>anchor * stride;
    const v = values + <usize>other * stride;
    const own = v128.load32_splat(table);
    const c = v128.load32_splat(table + (<usize>(other + 2) << 2));
    if (affine) sumTwo(a, v, own, c, true, out, n);
    else sumTwo(a, v, own, c, false, out, n);
  } else sumAll(values, stride, count, anchor, table, affine, out, n, false);
}
