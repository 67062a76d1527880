/** Functions that JavaScript's Math does not have, in f64. */

/**
 * The error function to f64 precision: up to |x| = 3 the series 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (2n+1)!!, whose terms
 * are all positive, beyond that the continued fraction of erfc (Abramowitz and Stegun 7.1.6 and 7.1.14).
 */
export function erf(x: number): number {
  const a = Math.abs(x);
  const tail = Math.exp(-a * a) / Math.sqrt(Math.PI);
  if (a <= 3) {
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n++) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
    }
    return 2 * tail * sum;
  }
  let fraction = a;
  for (let k = 60; k > 0; k--) fraction = a + k / 2 / fraction;
  return Math.sign(x) * (1 - tail / fraction);
}

export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const silu = (x: number) => x / (1 + Math.exp(-x));
const tanhGelu = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

/** Activations by their names in transformers (activations.py), which are those of PyTorch's classes in small letters. */
export const ACTIVATIONS: Readonly<Record<string, (x: number) => number>> = {
  ...{ identity: (x) => x, linear: (x) => x, sigmoid, tanh: Math.tanh, silu, swish: silu },
  relu: (x) => Math.max(x, 0),
  relu2: (x) => Math.max(x, 0) ** 2,
  leaky_relu: (x) => (x > 0 ? x : 0.01 * x),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  quick_gelu: (x) => x / (1 + Math.exp(-1.702 * x)),
  ...{ gelu_new: tanhGelu, gelu_pytorch_tanh: tanhGelu },
};

/** The x below which a standard normal variable lies with probability p, by Newton's method on the error function. */
export function normalQuantile(p: number): number {
  let x = 0;
  for (let i = 0; i < 100; i++) {
    const excess = 0.5 * (1 + erf(x * Math.SQRT1_2)) - p;
    const step = excess * Math.sqrt(2 * Math.PI) * Math.exp((x * x) / 2);
    // far out the tangent overshoots
    x -= Math.max(-1, Math.min(1, step));
    if (Math.abs(step) < 1e-14) break;
  }
  return x;
}
