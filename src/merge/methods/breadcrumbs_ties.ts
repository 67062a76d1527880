import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import { gamma, int8Mask, lambda, normalize, rescale, trimmingDensity, weight } from './parameters';

/** Model Breadcrumbs, Davari and Belilovsky 2023 (see breadcrumbs.ts), with the sign election of TIES. */
export const breadcrumbsTies = defineMethod({
  id: 'breadcrumbs_ties',
  title: 'Breadcrumbs + TIES — drop outliers and noise, elect sign',
  summary:
    'Drops the largest and the smallest changes of each model, then keeps those that agree on the sign.',
  formula: 'W = W₀ + λ · Σ mᵢwᵢτ̂ᵢ,  τ̂ᵢ without the ⌊γn⌋ largest, ⌊ρn⌋ kept below them',
  reference: { label: 'Davari and Belilovsky 2023', url: 'https://arxiv.org/abs/2312.06795' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalize(false),
    lambda,
    rescale: rescale('none', 'l1', ['none', '1/density', 'l1']),
    int8_mask: int8Mask,
    ...calibrationSize,
  },
  modelParameters: { weight, density: trimmingDensity(0.9), gamma, calibration },
  contract: {
    permutation: 'invariant',
    single: 'rounded',
    spread: 'element',
    settings: [
      { models: [{ density: 0.4 }, { density: 0.25, gamma: 0.1 }, { density: 0.95, gamma: 0.2 }] },
      { parameters: { normalize: true, rescale: '1/density' }, models: [{ density: 0.5 }, { density: 0.3 }] },
    ],
  },
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'band',
      rescale: p.rescale,
      consensus: 'sum',
      normalize: p.normalize,
      lambda: p.lambda,
    }),
  },
});
