import type { Svd } from '../../linalg/small-svd';
import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import { lambda, singularRank } from './parameters';

/**
 * TSV-Merge, Gargiulo et al. 2025: of every model's change the min(rows, cols)/N largest singular directions; those of all
 * models together are made orthogonal, left and right each by itself (the polar factor), and keep their singular values.
 * Directions without a singular value, which the authors' code fills up with arbitrary ones (of a LoRA), are left out.
 */
export const tsvM = defineMethod({
  id: 'tsv_m',
  title: 'TSV-M — task singular vectors',
  summary:
    'Keeps each model’s strongest singular directions and makes those of all models orthogonal; 2–10 % worse than task arithmetic in our table.',
  formula: 'W = W₀ + λ · Û Σ V̂ᵀ,  Û = polar [U₁ … U_N],  V̂ = polar [V₁ … V_N]',
  reference: { label: 'Gargiulo et al. 2025', url: 'https://arxiv.org/abs/2412.00081' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: { lambda, rank: singularRank, ...calibrationSize },
  modelParameters: { calibration },
  compute: {
    kind: 'spectral',
    lambda: (p) => p.lambda,
    async change({ rows, cols, each, svd, orthogonal }, { rank }) {
      const wanted = Math.min(rank, Math.max(1, Math.floor(Math.min(rows, cols) / each.length)));
      const found: Svd[] = [];
      for (const change of each) found.push(await svd(change, wanted));
      return orthogonal(found, 'own');
    },
  },
});
