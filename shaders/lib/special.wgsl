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
