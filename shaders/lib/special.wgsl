// Transcendental functions that neither overflow nor lose more than about 3e-7 of 1.

// Cephes tanhf: a polynomial near 0, where the quotient of exponentials would cancel.
fn tanh_f32(x: f32) -> f32 {
  let a = abs(x);
  if (a < 0.625) {
    let z = x * x;
    let p = (((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z
      - 3.33332819422e-1;
    return x + x * z * p;
  }
  let e = exp(-2.0 * a);
  return sign(x) * (1.0 - e) / (1.0 + e);
}

// Abramowitz and Stegun 7.1.26: within 1.5e-7.
fn erf_f32(x: f32) -> f32 {
  let a = abs(x);
  let t = 1.0 / (1.0 + 0.3275911 * a);
  let p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return sign(x) * (1.0 - p * exp(-a * a));
}

// 1 / (1 + e^-x), with an exponent that is never positive.
fn sigmoid_f32(x: f32) -> f32 {
  let e = exp(-abs(x));
  return select(e, 1.0, x >= 0.0) / (1.0 + e);
}

// e^x − 1 for x ≤ 0: its series near 0, where the difference would cancel.
fn expm1_f32(x: f32) -> f32 {
  if (x < -0.35) { return exp(x) - 1.0; }
  return x * (1.0 + x * (0.5 + x * (0.16666667 + x * (0.041666667 + x * (0.0083333333 + x * 0.0013888889)))));
}

// ln(1 + e^x), whatever the size of x.
fn softplus_f32(x: f32) -> f32 {
  let e = exp(-abs(x));
  // ln(1 + e) = 2 artanh(e / (2 + e))
  let z = e / (2.0 + e);
  let q = z * z;
  let small = 2.0 * z * (1.0 + q * (0.33333333 + q * (0.2 + q * (0.14285714 + q * (0.11111111 + q * 0.09090909)))));
  return max(x, 0.0) + select(small, log(1.0 + e), e > 0.5);
}
