// e^x and functions of it, four f32 at a time. Against f64: tanh within 2 ulp, SiLU within 3, a softmax's share within 4, both
// forms of GELU within 1.5e-7 of |x| (src/backend/cpu/row-kernels.test.ts). A lane's bits depend on its own number alone. NaN stays
// NaN.

/** Below this e^x would be subnormal, and is 0. */
const LEAST: f32 = -87.33654;
/** Above this it stays what it is here: 2.39e38. */
const MOST: f32 = 88.37;
/** 1.5 · 2^23: a number of up to 22 bits added to it is rounded to the nearest whole one, which stands in the last bits. */
const WHOLE: f32 = 12582912;

/** One step of Horner's scheme. */
@inline
function step(p: v128, x: v128, c: f32): v128 {
  return f32x4.add(f32x4.mul(p, x), f32x4.splat(c));
}

/** e^x as 2^n · e^r with |r| ≤ ln 2 / 2, e^r by the polynomial of Cephes' expf (Moshier). */
@inline
export function exp4(x: v128): v128 {
  // pmax and pmin return their first operand where it is NaN
  const y = f32x4.pmin(f32x4.pmax(x, f32x4.splat(LEAST)), f32x4.splat(MOST));
  const whole = f32x4.add(f32x4.mul(y, f32x4.splat(1.44269504)), f32x4.splat(WHOLE));
  const n = f32x4.sub(whole, f32x4.splat(WHOLE));
  // ln 2 in two parts; the product with the first is exact
  const high = f32x4.sub(y, f32x4.mul(n, f32x4.splat(0.693359375)));
  const r = f32x4.sub(high, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = step(f32x4.splat(1.9875691500e-4), r, 1.3981999507e-3);
  p = step(p, r, 8.3334519073e-3);
  p = step(p, r, 4.1665795894e-2);
  p = step(p, r, 1.6666665459e-1);
  p = step(p, r, 5.0000001201e-1);
  p = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(p, r), r), r), f32x4.splat(1));
  const scale = i32x4.shl(i32x4.add(whole, i32x4.splat(127)), 23);
  return v128.andnot(f32x4.mul(p, scale), f32x4.lt(x, f32x4.splat(LEAST)));
}

/** tanh x: Cephes' tanhf, a polynomial below 0.625, where the quotient of exponentials would cancel. */
export function tanh4(x: v128): v128 {
  const a = f32x4.abs(x);
  const z = f32x4.mul(x, x);
  let p = step(f32x4.splat(-5.70498872745e-3), z, 2.06390887954e-2);
  p = step(p, z, -5.37397155531e-2);
  p = step(p, z, 1.33314422036e-1);
  p = step(p, z, -3.33332819422e-1);
  const near = f32x4.add(f32x4.mul(f32x4.mul(p, z), x), x);
  const e = f32x4.add(exp4(f32x4.add(a, a)), f32x4.splat(1));
  const far = f32x4.sub(f32x4.splat(1), f32x4.div(f32x4.splat(2), e));
  const signed = v128.bitselect(x, far, i32x4.splat(0x80000000));
  return v128.bitselect(near, signed, f32x4.lt(a, f32x4.splat(0.625)));
}

/** x · sigmoid(scale), the SiLU for scale = x. */
@inline
export function gate4(x: v128, scale: v128): v128 {
  return f32x4.div(x, f32x4.add(f32x4.splat(1), exp4(f32x4.neg(scale))));
}

/** x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which is x · sigmoid of twice the argument. */
@inline
export function geluTanh4(x: v128): v128 {
  const cube = f32x4.mul(f32x4.mul(x, x), x);
  const inner = f32x4.add(x, f32x4.mul(cube, f32x4.splat(0.044715)));
  return gate4(x, f32x4.mul(inner, f32x4.splat(1.59576912)));
}

/** x/2 · (1 + erf(x/√2)): Cephes' erff up to 1, beyond that its erfcf. */
export function geluErf4(x: v128): v128 {
  const s = f32x4.mul(x, f32x4.splat(0.70710678));
  const a = f32x4.abs(s);
  const half = f32x4.mul(x, f32x4.splat(0.5));
  const z = f32x4.mul(s, s);
  let t = step(f32x4.splat(7.853861353153693e-5), z, -8.010193625184903e-4);
  t = step(t, z, 5.188327685732524e-3);
  t = step(t, z, -2.685381193529856e-2);
  t = step(t, z, 1.128358514861418e-1);
  t = step(t, z, -3.761262582423300e-1);
  t = step(t, z, 1.128379165726710);
  const near = f32x4.add(half, f32x4.mul(half, f32x4.mul(s, t)));
  const q = f32x4.div(f32x4.splat(1), f32x4.max(a, f32x4.splat(1)));
  const y = f32x4.mul(q, q);
  let p = step(f32x4.splat(2.326819970068386e-2), y, -1.387039388740657e-1);
  p = step(p, y, 3.687424674597105e-1);
  p = step(p, y, -5.824733027278666e-1);
  p = step(p, y, 6.210004621745983e-1);
  p = step(p, y, -4.944515323274145e-1);
  p = step(p, y, 3.404879937665872e-1);
  p = step(p, y, -2.741127028184656e-1);
  p = step(p, y, 5.638259427386472e-1);
  let r = step(f32x4.splat(-1.047766399936249e1), y, 1.297719955372516e1);
  r = step(r, y, -7.495518717768503);
  r = step(r, y, 2.921019019210786);
  r = step(r, y, -1.015265279202700);
  r = step(r, y, 4.218463358204948e-1);
  r = step(r, y, -2.820767439740514e-1);
  r = step(r, y, 5.641895067754075e-1);
  const poly = v128.bitselect(p, r, f32x4.lt(a, f32x4.splat(2)));
  const tail = f32x4.mul(f32x4.mul(exp4(f32x4.neg(z)), q), poly); // erfc |s|
  const part = f32x4.mul(half, tail);
  const far = v128.bitselect(part, f32x4.sub(x, part), f32x4.lt(x, f32x4.splat(0)));
  return v128.bitselect(near, far, f32x4.lt(a, f32x4.splat(1)));
}

/** cap · tanh(x / cap). */
@inline
export function softCap4(x: v128, cap: f32): v128 {
  return f32x4.mul(f32x4.splat(cap), tanh4(f32x4.div(x, f32x4.splat(cap))));
}

/** The first `n` (1 to 3) of four numbers at p, the others `fill`. */
export function some(p: usize, n: i32, fill: f32): v128 {
  let v = f32x4.replace_lane(f32x4.splat(fill), 0, load<f32>(p));
  if (n > 1) v = f32x4.replace_lane(v, 1, load<f32>(p, 4));
  if (n > 2) v = f32x4.replace_lane(v, 2, load<f32>(p, 8));
  return v;
}

/** Stores the first `n` (1 to 3) of four numbers. */
export function putSome(p: usize, n: i32, v: v128): void {
  store<f32>(p, f32x4.extract_lane(v, 0));
  if (n > 1) store<f32>(p, f32x4.extract_lane(v, 1), 4);
  if (n > 2) store<f32>(p, f32x4.extract_lane(v, 2), 8);
}

/** The largest of four numbers; NaN where there is one. */
@inline
export function largest(v: v128): f32 {
  return max(
    max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)),
    max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)),
  );
}

/** Four numbers added to two sums in f64. */
@inline
export function plus4(sums: v128, v: v128): v128 {
  const high = v128.shuffle<u32>(v, v, 2, 3, 2, 3);
  return f64x2.add(sums, f64x2.add(f64x2.promote_low_f32x4(v), f64x2.promote_low_f32x4(high)));
}

@inline
export function sumOf(sums: v128): f64 {
  return f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
}
