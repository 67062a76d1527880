import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import { lambda, singularRank } from './parameters';

/**
 * Iso-C, Marczak et al. 2025: the sum of the changes with all its singular values made alike, their mean. Directions without
 * a singular value stay out of it: the authors' code takes arbitrary ones where the sum has no full rank.
 */
export const isoC = defineMethod({
  id: 'iso_c',
  title: 'Iso-C — all directions alike',
  summary:
    'Adds up the changes and makes all singular values of the sum alike; 2–124 % worse than task arithmetic in our table.',
  formula: 'W = W₀ + λ · σ̄ · U Vᵀ,  Σ τᵢ = U Σ Vᵀ,  σ̄ = mean σ',
  reference: { label: 'Marczak et al. 2025', url: 'https://arxiv.org/abs/2502.04959' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: { lambda, rank: singularRank, ...calibrationSize },
  modelParameters: { calibration },
  compute: {
    kind: 'spectral',
    lambda: (p) => p.lambda,
    async change({ rows, cols, each, svd, sum, orthogonal }, { rank }) {
      return orthogonal([await svd(sum(each), Math.min(rank, rows, cols))], 'alike');
    },
  },
});
