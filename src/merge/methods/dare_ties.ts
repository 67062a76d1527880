import type { MergeMethod } from '../method';
import { density, int8Mask, lambda, normalize, rescale, weight } from './parameters';

/**
 * DARE, Yu et al. 2023, with sign election. mergekit 0.1.4 matches ‖τ‖₁ instead of the paper's 1/ρ; both are offered.
 * The mask is drawn from a counter (Philox4x32-10), so it does not depend on order, tile or device.
 */
export const dareTies: MergeMethod = {
  id: 'dare_ties',
  title: 'DARE + TIES — drop at random, elect sign',
  summary: 'Drops changes at random, scales up the rest, then keeps those that agree on the sign.',
  formula: 'W = W₀ + λ · Σ mᵢ wᵢ · sᵢ · (bᵢ ⊙ τᵢ),  bᵢ ~ Bernoulli(ρᵢ)',
  reference: { label: 'Yu et al. 2023', url: 'https://arxiv.org/abs/2311.03099' },
  base: 'required',
  models: { min: 1, max: 16 },
  parameters: { normalize: normalize(false), lambda, rescale: rescale('l1'), int8_mask: int8Mask },
  modelParameters: { weight, density },
  contract: { permutation: 'invariant', single: 'rounded', spread: 'tensor' },
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'random',
      rescale: p.rescale as 'none' | '1/density' | 'l1',
      consensus: 'sum',
      normalize: p.normalize === true,
      lambda: Number(p.lambda),
    }),
  },
};
