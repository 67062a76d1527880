/**
 * KL(softmax(b) ‖ softmax(a)) row by row, in f64 on the host, for both engines alike: a divergence of nearly equal,
 * nearly uniform distributions is a sum that cancels to its last digits in f32, and a GPU's exponential is not
 * reproducible. Only the choice of elements depends on it, and it is computed once per tensor.
 */

/** mergekit 0.1.4 adds this to both distributions (`arcee_fusion.py`). */
const FLOOR = 1e-8;

/**
 * Divergence of every row of b = a + change from a, both distributions raised by 1e-8.
 *
 * With p and q the raised distributions, which have equal sums, Σ p·ln(p/q) = Σ q·h(p/q − 1) with
 * h(u) = (1 + u)·ln(1 + u) − u ≥ 0: no term cancels another.
 *
 * @param base a, whole rows of `cols`, f32
 * @param change b − a, f32
 */
export function rowDivergences(base: Float32Array, change: Float32Array, cols: number): Float64Array {
  const p = new Float64Array(cols);
  const q = new Float64Array(cols);
  return Float64Array.from({ length: base.length / cols }, (_, row) => {
    const at = row * cols;
    for (let c = 0; c < cols; c++) {
      q[c] = base[at + c]!;
      p[c] = base[at + c]! + change[at + c]!;
    }
    softmax(p);
    softmax(q);
    let total = 0;
    for (let c = 0; c < cols; c++) {
      const raised = q[c]! + FLOOR;
      total += raised * excess((p[c]! - q[c]!) / raised);
    }
    return total;
  });
}

/** Replaces values by their softmax. */
function softmax(values: Float64Array): void {
  let top = Number.NEGATIVE_INFINITY;
  for (let c = 0; c < values.length; c++) top = Math.max(top, values[c]!);
  let sum = 0;
  for (let c = 0; c < values.length; c++) {
    values[c] = Math.exp(values[c]! - top);
    sum += values[c]!;
  }
  for (let c = 0; c < values.length; c++) values[c] = values[c]! / sum;
}

/** h(u) = (1 + u)·ln(1 + u) − u for u > −1, accurate for small u. */
function excess(u: number): number {
  if (Math.abs(u) > 0.01) return (1 + u) * Math.log1p(u) - u;
  // Σ_{k ≥ 2} (−u)^k / (k·(k − 1))
  return u * u * (1 / 2 - u * (1 / 6 - u * (1 / 12 - u * (1 / 20 - u * (1 / 30 - u * (1 / 42 - u / 56))))));
}
