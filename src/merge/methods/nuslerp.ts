import { defineMethod } from '../method';
import { angle, norm } from '../tensor/products';
import { weight } from './parameters';

/** Smallest usable sum of weights: below it the point between the models is undefined. */
const NO_WEIGHT = 1e-6;

/**
 * Spherical interpolation between two models, or between their changes to a base: mergekit 0.1.4 `nuslerp.py`. A vector
 * is the whole tensor, or each row; with `nuslerp_row_wise` mergekit takes what runs along the first dimension.
 */
export const nuslerp = defineMethod({
  id: 'nuslerp',
  title: 'NuSLERP — along the arc, by weights',
  summary:
    'SLERP of two models by their weights; with a base, of their changes; whole tensors or row by row.',
  formula: 'W = (W₀ +) sin((1 − t)θ) / sin θ · v₁ + sin(tθ) / sin θ · v₂,  t = w₂ / (w₁ + w₂)',
  reference: { label: 'mergekit', url: 'https://github.com/arcee-ai/mergekit' },
  base: 'optional',
  models: { min: 2, max: 2 },
  parameters: {
    nuslerp_flatten: {
      kind: 'boolean',
      label: 'flatten',
      help: 'Take each tensor as one vector. Off: row by row.',
      default: true,
    },
    nuslerp_row_wise: {
      kind: 'boolean',
      label: 'row-wise (first dimension)',
      help: 'With flatten off: take what runs along the first dimension as the vectors (mergekit’s meaning of the name).',
      default: false,
    },
  },
  modelParameters: { weight },
  validate(_, models) {
    const sum = models.reduce((s, m) => s + m.weight, 0);
    if (Math.abs(sum) >= NO_WEIGHT) return undefined;
    return { reason: 'the weights add up to 0', remedy: 'Change one of the two weights.' };
  },
  compute: {
    kind: 'products',
    vectors: 'changes if base',
    groups: (p) => (p.nuslerp_flatten ? 'tensor' : p.nuslerp_row_wise ? 'columns' : 'rows'),
    coefficients(products, models) {
      const [first, second] = models.map((m) => m.weight);
      const t = second! / (first! + second!);
      const cosine =
        products.at(0, 1) / (Math.max(norm(products, 0), 1e-7) * Math.max(norm(products, 1), 1e-7));
      const theta = angle(cosine);
      const sine = Math.sin(theta);
      if (Math.abs(sine) < 1e-8) return [1 - t, t];
      return [Math.sin((1 - t) * theta) / sine, Math.sin(t * theta) / sine];
    },
  },
});
