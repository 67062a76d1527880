import { defineMethod } from '../method';
import { angle, combinedNorm, combinedProduct, norm, type Products } from '../tensor/products';

/**
 * The Karcher (Riemannian) mean of the directions on the sphere, scaled by the mean length: Karcher 1977; mergekit 0.1.4
 * `karcher.py`. Every iterate lies in the span of the models, so the iteration runs on coefficients in f64 and the data
 * is read twice, not once per step.
 */
export const karcher = defineMethod({
  id: 'karcher',
  title: 'Karcher mean — mean on the sphere',
  summary: 'The direction with the smallest sum of squared angles to all models, with their mean length.',
  formula: 'W = mean ‖Wᵢ‖ · argmin_u Σ ∠(u, Wᵢ)²',
  reference: { label: 'Karcher 1977', url: 'https://doi.org/10.1002/cpa.3160300502' },
  base: 'none',
  models: { min: 1, max: 32 },
  parameters: {
    max_iter: {
      kind: 'number',
      label: 'steps at most',
      help: 'The iteration ends here even if it has not converged.',
      default: 10,
      min: 1,
      max: 1_000_000,
      integer: true,
    },
    tol: {
      kind: 'number',
      label: 'tolerance',
      help: 'The iteration ends when a step is shorter than this angle, in radians.',
      default: 1e-5,
      min: 0,
      max: 1,
    },
  },
  modelParameters: {},
  compute: {
    kind: 'products',
    vectors: 'weights',
    coefficients(products, models, parameters) {
      const n = models.length;
      const norms = Array.from({ length: n }, (_, i) => norm(products, i));
      const valid = norms.flatMap((length, i) => (length > 0 ? [i] : []));
      if (n === 1 || valid.length === 0) return norms.map(() => 1 / n);
      const mean = meanDirection(products, norms, valid, parameters.max_iter, parameters.tol);
      // vectors on one line, as single numbers are: what two directions have no middle of, numbers have
      if (!mean && valid.every((i) => isOnLine(products, norms, valid[0]!, i))) return norms.map(() => 1 / n);
      if (!mean) return { undefined: 'two of the models point in opposite directions, so there is no mean' };
      const size = norms.reduce((a, b) => a + b, 0) / n;
      return mean.map((m) => m * size);
    },
  },
});

/** Coefficients of the mean direction, a unit vector; undefined where the logarithm is. */
function meanDirection(
  products: Products,
  norms: readonly number[],
  valid: readonly number[],
  steps: number,
  tolerance: number,
): number[] | undefined {
  const unit = (i: number) => norms.map((length, j) => (i === j ? 1 / length : 0));
  const toUnit = (c: readonly number[]) => {
    const length = combinedNorm(products, c);
    return c.map((x) => x / length);
  };
  const share = 1 / valid.length;
  const sum = norms.map((length, i) => (valid.includes(i) ? share / length : 0));
  let mean = combinedNorm(products, sum) < tolerance ? unit(valid[0]!) : toUnit(sum);
  for (let step = 0; step < steps; step++) {
    let tangent = norms.map(() => 0);
    for (const i of valid) {
      const cosine = combinedProduct(products, mean, unit(i));
      const theta = angle(cosine);
      if (theta < tolerance || theta === 0) continue;
      if (Math.sin(theta) < 1e-9) return undefined;
      const stretch = (share * theta) / Math.sin(theta);
      tangent = tangent.map((t, j) => t + stretch * ((i === j ? 1 / norms[i]! : 0) - cosine * mean[j]!));
    }
    const length = combinedNorm(products, tangent);
    if (length < tolerance || length === 0) break;
    const bend = Math.sin(length) / length;
    mean = toUnit(mean.map((m, j) => Math.cos(length) * m + bend * tangent[j]!));
  }
  return mean;
}

/** Whether two vectors are multiples of each other. */
function isOnLine(products: Products, norms: readonly number[], i: number, j: number): boolean {
  const unit = (k: number) => norms.map((length, l) => (k === l ? 1 / length : 0));
  return Math.abs(combinedProduct(products, unit(i), unit(j))) > 1 - 1e-12;
}
