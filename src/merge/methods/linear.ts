import { defineMethod } from '../method';
import { normalize, weight } from './parameters';

/** Weighted mean of the weights: model soups, Wortsman et al. 2022; mergekit 0.1.4 `linear.py`. */
export const linear = defineMethod({
  id: 'linear',
  title: 'Linear — weighted mean',
  summary: 'The weighted mean of the models’ weights.',
  formula: 'W = Σ wᵢ Wᵢ / Σ wᵢ',
  reference: { label: 'Wortsman et al. 2022', url: 'https://arxiv.org/abs/2203.05482' },
  base: 'none',
  models: { min: 1, max: 32 },
  parameters: { normalize: normalize(true) },
  modelParameters: { weight },
  compute: {
    kind: 'weights',
    coefficients: (models, p) => {
      const weights = models.map((m) => m.weight);
      const total = p.normalize ? weights.reduce((a, b) => a + b, 0) : 1;
      return weights.map((w) => w / total);
    },
  },
});
