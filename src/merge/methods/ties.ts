import type { MergeMethod } from '../method';
import { density, int8Mask, lambda, normalize, rescale, weight } from './parameters';

/**
 * TIES: trim, elect sign, disjoint merge. Yadav et al. 2023, with the semantics of mergekit 0.1.4: top-k per tensor,
 * election on weighted changes, division by the sum of agreeing weights.
 */
export const ties: MergeMethod = {
  id: 'ties',
  title: 'TIES — trim, elect sign, merge',
  summary: 'Keeps each model’s largest changes, lets them vote on the sign, averages those that agree.',
  formula: 'W = W₀ + λ · Σ mᵢwᵢτ̂ᵢ / Σ mᵢwᵢ',
  reference: { label: 'Yadav et al. 2023', url: 'https://arxiv.org/abs/2306.01708' },
  base: 'required',
  models: { min: 1, max: 16 },
  parameters: { normalize: normalize(true), lambda, rescale: rescale('none'), int8_mask: int8Mask },
  modelParameters: { weight, density },
  contract: { permutation: 'invariant', single: 'rounded', spread: 'element' },
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'top-k',
      rescale: p.rescale as 'none' | '1/density' | 'l1',
      consensus: 'sum',
      normalize: p.normalize === true,
      lambda: Number(p.lambda),
    }),
  },
};
