import { defineMethod } from '../method';
import {
  byImportance,
  calibration,
  checkImportance,
  importance,
  WITH_IMPORTANCE,
  wholeCalibration,
} from './importance-parameters';
import { density, int8Mask, lambda, normalize, rescale, weight } from './parameters';

/** Task arithmetic, Ilharco et al. 2022; mergekit 0.1.4 `generalized_task_arithmetic.py` without selection or consensus. */
export const taskArithmetic = defineMethod({
  id: 'task_arithmetic',
  title: 'Task arithmetic',
  summary: 'Adds the weighted changes of every model to the base.',
  formula: 'W = W₀ + λ · Σ wᵢ τᵢ  (/ Σ wᵢ: normalize)',
  reference: { label: 'Ilharco et al. 2022', url: 'https://arxiv.org/abs/2212.04089' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: {
    normalize: normalize(false),
    lambda,
    rescale: { ...rescale('none', 'l1', ['none', 'l1']), inert: true },
    int8_mask: int8Mask,
    ...importance,
  },
  modelParameters: {
    weight,
    density: { ...density, when: WITH_IMPORTANCE },
    calibration,
  },
  validate: (p) => checkImportance(p, 'none'),
  wholeModel: wholeCalibration,
  compute: {
    kind: 'delta',
    preset: (p) => ({
      ...byImportance(p, { select: 'all', rescale: 'none' }),
      consensus: 'none',
      normalize: p.normalize,
      lambda: p.lambda,
    }),
  },
});
