import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import {
  checkEpsilon,
  dropped,
  epsilon,
  int8Mask,
  lambda,
  normalize,
  rescale,
  trimmingDensity,
  weight,
} from './parameters';

/**
 * DELLA's dropping by rank, Deep et al. 2024, with a plain sum: keeps a change with a probability that grows with its rank in
 * its row. mergekit 0.1.4 matches ‖τ‖₁, the paper divides every change by its own probability.
 */
export const dellaLinear = defineMethod({
  id: 'della_linear',
  title: 'DELLA linear — drop by rank, add',
  summary: 'Drops small changes more often than large ones, scales up the rest, adds them to the base.',
  formula: 'W = W₀ + λ · Σ wᵢsᵢτ̂ᵢ,  P(keep) = ρ − ε + 2ε · rank / (n − 1)',
  reference: { label: 'Deep et al. 2024', url: 'https://arxiv.org/abs/2406.11617' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalize(false),
    lambda,
    rescale: rescale('l1', 'l1', ['none', 'l1', '1/probability']),
    int8_mask: int8Mask,
    ...calibrationSize,
  },
  modelParameters: { weight, density: trimmingDensity(0.5), epsilon, calibration },
  validate: checkEpsilon,
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'rank',
      rescale: p.rescale,
      consensus: 'none',
      normalize: p.normalize,
      lambda: p.lambda,
    }),
  },
});
