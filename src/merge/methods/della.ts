import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import {
  checkEpsilon,
  epsilon,
  int8Mask,
  lambda,
  normalize,
  rescale,
  trimmingDensity,
  weight,
} from './parameters';

/**
 * DELLA, Deep et al. 2024: keeps a change with a probability that grows with its rank in its row, then elects a sign as
 * TIES does. mergekit 0.1.4 matches ‖τ‖₁, the paper divides every change by its own probability.
 */
export const della = defineMethod({
  id: 'della',
  title: 'DELLA — drop by rank, elect sign',
  summary:
    'Drops small changes more often than large ones, scales up the rest, keeps those that agree on the sign.',
  formula: 'W = W₀ + λ · Σ mᵢwᵢsᵢτ̂ᵢ / Σ mᵢwᵢ,  P(keep) = ρ − ε + 2ε · rank / (n − 1)',
  reference: { label: 'Deep et al. 2024', url: 'https://arxiv.org/abs/2406.11617' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalize(true),
    lambda,
    rescale: rescale('l1', 'l1', ['none', 'l1', '1/probability']),
    int8_mask: int8Mask,
    ...calibrationSize,
  },
  modelParameters: { weight, density: trimmingDensity(0.5), epsilon, calibration },
  validate: checkEpsilon,
  contract: {
    permutation: 'invariant',
    single: 'rounded',
    spread: 'tensor',
    settings: [
      { models: [{ density: 0.4, epsilon: 0.1 }, { density: 0.25 }, { density: 0.7, epsilon: 0.29 }] },
      { parameters: { rescale: '1/probability', lambda: 1.1 }, models: [{ density: 0.3 }, { density: 0.5 }] },
      {
        parameters: { rescale: 'none' },
        models: [
          { density: 0, epsilon: 0 },
          { density: 0.6, epsilon: 0 },
        ],
      },
    ],
  },
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'rank',
      rescale: p.rescale,
      consensus: 'sum',
      normalize: p.normalize,
      lambda: p.lambda,
    }),
  },
});
