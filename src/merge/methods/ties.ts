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
 * TIES: trim, elect sign, disjoint merge. Yadav et al. 2023. `mergekit` (0.1.4): top-k per tensor, election on weighted
 * changes, division by the sum of agreeing weights. `paper` (the authors' code): one threshold for the whole model,
 * election on unweighted changes, ties of the vote to the majority sign of the whole model, division by the number of
 * agreeing models. `peft` (on whole changes ΔW, as its `ties_svd`): top-k per tensor, unweighted election, division by
 * the number.
 */
export const ties = defineMethod({
  id: 'ties',
  title: 'TIES — trim, elect sign, merge',
  summary: 'Keeps each model’s largest changes, lets them vote on the sign, averages those that agree.',
  formula: 'W = W₀ + λ · Σ mᵢwᵢτ̂ᵢ / Σ mᵢwᵢ',
  reference: { label: 'Yadav et al. 2023', url: 'https://arxiv.org/abs/2306.01708' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalizeByName(true),
    lambda,
    rescale: rescaleByName('none'),
    int8_mask: int8Mask,
    semantics,
    majority_sign_method: majoritySign,
    space,
    ...importance,
  },
  modelParameters: { weight, density: trimmingDensity(0.2), calibration },
  validate: (p) => checkMajoritySign(p) ?? checkSpace(p) ?? checkPaper(p) ?? checkImportance(p, 'none'),
  wholeModel: (p) => [...(p.semantics === 'paper' ? ['density'] : []), ...wholeCalibration(p)],
  compute: {
    kind: 'delta',
    preset: (p) => ({
      ...byImportance(p, { select: 'top-k', rescale: rescaleOf(p) }),
      scope: p.semantics === 'paper' ? 'model' : 'tensor',
      ...consensusOf(p),
      space: p.space,
      lambda: p.lambda,
    }),
  },
});
