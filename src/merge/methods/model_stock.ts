import { defineMethod } from '../method';
import { norm } from '../tensor/products';

/**
 * Model Stock, Jang et al. 2024: how far to go from the base to the mean of fine-tunes follows from the angle between
 * them; the mean of all pairs, as mergekit 0.1.4 takes it. Where the changes cancel so far that the ratio has no
 * positive denominator, the base stays (mergekit divides by zero).
 */
export const modelStock = defineMethod({
  id: 'model_stock',
  title: 'Model Stock — toward the mean, by the angle',
  summary: 'Moves from the base toward the mean of the models: the more their changes agree, the further.',
  formula: 'W = W₀ + t · mean(τᵢ),  t = N cos θ / (1 + (N − 1) cos θ)',
  reference: { label: 'Jang et al. 2024', url: 'https://arxiv.org/abs/2403.19522' },
  base: 'required',
  models: { min: 2, max: 32 },
  parameters: {
    filter_wise: {
      kind: 'boolean',
      label: 'filter-wise',
      help: 'An angle for every row (output unit) instead of one for the tensor.',
      default: false,
    },
  },
  modelParameters: {},
  compute: {
    kind: 'products',
    vectors: 'changes',
    groups: (p) => (p.filter_wise ? 'rows' : 'tensor'),
    coefficients(products, models) {
      const n = models.length;
      let sum = 0;
      for (let i = 0; i < n; i++) {
        for (let j = i + 1; j < n; j++) {
          const size = Math.max(norm(products, i) * norm(products, j), 1e-6);
          sum += Math.max(-1, Math.min(1, products.at(i, j) / size));
        }
      }
      const cosine = sum / ((n * (n - 1)) / 2);
      const divisor = 1 + (n - 1) * cosine;
      const t = divisor <= 1e-9 ? 0 : (n * cosine) / divisor;
      return models.map(() => t / n);
    },
  },
});
