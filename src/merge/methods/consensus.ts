import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import { dropped, lambda } from './parameters';

/**
 * Consensus merging, Wang et al. 2024 (TALL masks): the sum of all changes, where at least k models claim the weight:
 * their change is at least t of what the others add to it.
 */
export const consensus = defineMethod({
  id: 'consensus',
  title: 'Consensus — what several models claim',
  summary:
    'Adds up the changes where several models claim the weight; 6–104 % worse than task arithmetic in our table.',
  formula: 'W = W₀ + λ · m · Σ τᵢ,  m = [#{i: |τᵢ| ≥ t · |Σ τ − τᵢ|} ≥ k]',
  reference: { label: 'Wang et al. 2024', url: 'https://arxiv.org/abs/2405.07813' },
  base: 'required',
  tells: dropped,
  models: { min: 2, max: 32 },
  parameters: {
    lambda,
    tall: {
      kind: 'number',
      label: 't',
      help: 'A model claims a weight where its change is at least this much of what the others add.',
      default: 0.4,
      min: 0,
      max: 100,
      slider: { min: 0, max: 1, step: 0.05 },
      extension: true,
    },
    agree: {
      kind: 'number',
      label: 'k',
      help: 'How many models must claim a weight.',
      default: 2,
      min: 1,
      max: 32,
      integer: true,
      extension: true,
    },
    ...calibrationSize,
  },
  modelParameters: { calibration },
  compute: {
    kind: 'elementwise',
    form: 'delta',
    kernel: async () => (await import('./consensus.kernel')).kernel,
    coefficients: ({ tall, agree, lambda }) => [tall, agree, lambda],
    counters: (models) => models,
  },
});
