import type { Svd } from '../../linalg/small-svd';
import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import { lambda, singularRank } from './parameters';

/**
 * Iso-CTS, Marczak et al. 2025: as Iso-C, with the weakest directions of the sum replaced by the strongest that each model
 * has outside of the others; all are made orthogonal (the polar factor), left and right, and count alike.
 */
export const isoCts = defineMethod({
  id: 'iso_cts',
  title: 'Iso-CTS — common and own directions alike',
  summary:
    'As Iso-C, with the weakest directions replaced by those that each model has for itself; worse still.',
  formula: 'W = W₀ + λ · σ̄ · polar [U₁ … U_N U] · polar [V₁ … V_N V]ᵀ',
  reference: { label: 'Marczak et al. 2025', url: 'https://arxiv.org/abs/2502.04959' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: {
    lambda,
    common: {
      kind: 'number',
      label: 'common',
      help: 'Share of the directions that are those of the sum.',
      default: 0.8,
      min: 0,
      max: 1,
      slider: { min: 0, max: 1, step: 0.05 },
      extension: true,
    },
    rank: singularRank,
    ...calibrationSize,
  },
  modelParameters: { calibration },
  compute: {
    kind: 'spectral',
    lambda: (p) => p.lambda,
    async change({ rows, cols, each, svd, sum, outside, orthogonal }, { rank, common: share }) {
      const all = Math.min(rank, rows, cols);
      const n = each.length;
      const own = Math.round((all - Math.floor(all * share)) / n);
      const common = await svd(sum(each), Math.max(0, all - own * n));
      const found: Svd[] = [];
      for (const change of each) found.push(await svd(outside(common, change), own));
      return orthogonal([...found, common], 'alike');
    },
  },
});
