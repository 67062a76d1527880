import { defineMethod } from '../method';
import { combinedNorm, combinedProduct, norm } from '../tensor/products';
import { weight } from './parameters';

/** Spherical mean of several models by one step from their weighted direction; mergekit 0.1.4 `multislerp.py`. */
export const multislerp = defineMethod({
  id: 'multislerp',
  title: 'Multi-SLERP — weighted mean on the sphere',
  summary:
    'Weighted mean of several directions on the sphere, scaled by the mean length; with a base, of the changes.',
  formula: 'W = (W₀ +) Σ wᵢ‖vᵢ‖ · exp_μ(Σ wᵢ (uᵢ − ⟨uᵢ, μ⟩ μ)),  μ = Σ wᵢuᵢ / ‖Σ wᵢuᵢ‖',
  reference: { label: 'Goddard 2025', url: 'https://goddard.blog/posts/multislerp-wow-what-a-cool-idea' },
  base: 'optional',
  models: { min: 1, max: 32 },
  parameters: {
    normalize_weights: {
      kind: 'boolean',
      label: 'normalize weights',
      help: 'Divide the weights by their sum.',
      default: true,
    },
    eps: {
      kind: 'number',
      label: 'ε',
      help: 'Added to lengths before they are divided by.',
      default: 1e-8,
      min: 0,
      max: 1e-3,
    },
  },
  modelParameters: { weight },
  validate(p, models) {
    const sum = models.reduce((s, m) => s + m.weight, 0);
    if (p.normalize_weights !== true || Math.abs(sum) >= 1e-8) return undefined;
    return {
      reason: 'the weights add up to 0, and normalize_weights divides by their sum',
      remedy: 'Change a weight, or set normalize_weights: false.',
    };
  },
  compute: {
    kind: 'products',
    vectors: 'changes if base',
    coefficients(products, models, parameters) {
      const eps = parameters.eps;
      const given = models.map((m) => m.weight);
      const total = parameters.normalize_weights ? given.reduce((a, b) => a + b, 0) : 1;
      const weights = given.map((w) => w / total);
      if (weights.length === 1) return [1]; // a model alone is itself, whatever its weight
      const norms = weights.map((_, i) => norm(products, i));
      const unit = norms.map((n) => (n > 0 ? 1 / (n + eps) : 0));
      const sum = weights.map((w, i) => w * unit[i]!);
      const sumNorm = combinedNorm(products, sum);
      if (sumNorm <= eps) {
        const opposite = weights.length > 2 && norms.some((n, i) => n > 0 && weights[i] !== 0);
        return opposite ? { undefined: 'the weighted directions of the models cancel' } : weights;
      }
      const mean = sum.map((c) => c / sumNorm);
      const along = combinedProduct(products, sum, mean);
      const tangent = sum.map((c, i) => c - along * mean[i]!);
      const step = combinedNorm(products, tangent) + eps;
      const size = weights.reduce((s, w, i) => s + w * norms[i]!, 0);
      const bend = step > 0 ? Math.sin(step) / step : 1;
      return mean.map((m, i) => size * (Math.cos(step) * m + bend * tangent[i]!));
    },
  },
});
