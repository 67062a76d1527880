import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import { dropped, gamma, int8Mask, lambda, normalize, rescale, trimmingDensity, weight } from './parameters';

/**
 * Model Breadcrumbs, Davari and Belilovsky 2023: drops the largest changes as outliers and the smallest as noise. Counts
 * as in mergekit 0.1.4, without its fault on tensors so small that ⌊γn⌋ = 0: there it drops everything.
 */
export const breadcrumbs = defineMethod({
  id: 'breadcrumbs',
  title: 'Breadcrumbs — drop outliers and noise, add',
  summary: 'Drops the largest and the smallest changes of each model and adds the rest to the base.',
  formula: 'W = W₀ + λ · Σ wᵢτ̂ᵢ,  τ̂ᵢ without the ⌊γn⌋ largest, ⌊ρn⌋ kept below them',
  reference: { label: 'Davari and Belilovsky 2023', url: 'https://arxiv.org/abs/2312.06795' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalize(false),
    lambda,
    rescale: rescale('none', 'l1', ['none', '1/density', 'l1']),
    int8_mask: int8Mask,
    ...calibrationSize,
  },
  modelParameters: { weight, density: trimmingDensity(0.9), gamma, calibration },
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'band',
      rescale: p.rescale,
      consensus: 'none',
      normalize: p.normalize,
      lambda: p.lambda,
    }),
  },
});
