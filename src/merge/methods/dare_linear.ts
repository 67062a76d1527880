import { defineMethod } from '../method';
import {
  byImportance,
  calibration,
  checkImportance,
  importance,
  wholeCalibration,
} from './importance-parameters';
import {
  dropped,
  int8Mask,
  lambda,
  normalize,
  rescaleByName,
  rescaleOf,
  semantics,
  trimmingDensity,
  weight,
} from './parameters';

/**
 * DARE, Yu et al. 2023, plain sum. mergekit 0.1.4 matches ‖τ‖₁ where the paper and PEFT multiply by 1/ρ = 1/(1 − p).
 * The mask is drawn from a counter (Philox4x32-10), so it does not depend on order, tile or device.
 */
export const dareLinear = defineMethod({
  id: 'dare_linear',
  title: 'DARE — drop at random, add',
  summary: 'Drops changes at random, scales up the rest, adds them to the base.',
  formula: 'W = W₀ + λ · Σ wᵢ · sᵢ · (bᵢ ⊙ τᵢ),  bᵢ ~ Bernoulli(ρᵢ)',
  reference: { label: 'Yu et al. 2023', url: 'https://arxiv.org/abs/2311.03099' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalize(false),
    lambda,
    rescale: rescaleByName('on'),
    int8_mask: int8Mask,
    semantics,
    ...importance,
  },
  modelParameters: { weight, density: trimmingDensity(0.5), calibration },
  validate: (p) => checkImportance(p, 'on'),
  wholeModel: wholeCalibration,
  compute: {
    kind: 'delta',
    preset: (p) => ({
      ...byImportance(p, { select: 'random', rescale: rescaleOf(p) }),
      consensus: 'none',
      normalize: p.normalize,
      lambda: p.lambda,
    }),
  },
});
