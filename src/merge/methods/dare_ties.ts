import { defineMethod } from '../method';
import {
  byImportance,
  calibration,
  checkImportance,
  checkPaper,
  importance,
  wholeCalibration,
} from './importance-parameters';
import {
  checkMajoritySign,
  checkSpace,
  consensusOf,
  dropped,
  int8Mask,
  lambda,
  majoritySign,
  normalizeByName,
  rescaleByName,
  rescaleOf,
  semantics,
  space,
  trimmingDensity,
  weight,
} from './parameters';

/**
 * DARE, Yu et al. 2023, with the sign election of TIES, nothing trimmed a second time. mergekit 0.1.4 matches ‖τ‖₁,
 * elects on weighted changes and does not divide; the paper and PEFT multiply by 1/ρ, elect on unweighted changes and
 * divide by the number of agreeing models. The mask is drawn from a counter (Philox4x32-10), so it does not depend on
 * order, tile or device.
 */
export const dareTies = defineMethod({
  id: 'dare_ties',
  title: 'DARE + TIES — drop at random, elect sign',
  summary: 'Drops changes at random, scales up the rest, then keeps those that agree on the sign.',
  formula: 'W = W₀ + λ · Σ mᵢ wᵢ · sᵢ · (bᵢ ⊙ τᵢ),  bᵢ ~ Bernoulli(ρᵢ)',
  reference: { label: 'Yu et al. 2023', url: 'https://arxiv.org/abs/2311.03099' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalizeByName(false),
    lambda,
    rescale: rescaleByName('on'),
    int8_mask: int8Mask,
    semantics,
    majority_sign_method: majoritySign,
    space,
    ...importance,
  },
  modelParameters: { weight, density: trimmingDensity(0.5), calibration },
  validate: (p) => checkMajoritySign(p) ?? checkSpace(p) ?? checkPaper(p) ?? checkImportance(p, 'on'),
  wholeModel: wholeCalibration,
  compute: {
    kind: 'delta',
    preset: (p) => ({
      ...byImportance(p, { select: 'random', rescale: rescaleOf(p) }),
      ...consensusOf(p),
      space: p.space,
      lambda: p.lambda,
    }),
  },
});
