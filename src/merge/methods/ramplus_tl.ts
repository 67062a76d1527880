import { defineMethod } from '../method';
import { ramCoefficients, ramCompute, ramEpsilon } from './ram';

/**
 * Reinforced Agent Merging, plus, tensor-local 2026; mergekit 0.1.4 `ram.py`: as RAM, but a model's unique changes grow
 * with the share of its changes that others made too.
 */
export const ramplusTl = defineMethod({
  id: 'ramplus_tl',
  title: 'RAM+ — unique changes reinforced',
  summary: 'As RAM, with a model’s unique changes scaled up the more of its other changes are shared.',
  formula:
    'W = W₀ + λᵢτᵢ where unique, mean of the τᵢ where shared;  λᵢ = 1 + r · clamp(sharedᵢ / uniqueᵢ, 0, α)',
  reference: { label: 'Reinforced Agent Merging 2026', url: 'https://arxiv.org/abs/2601.13572' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: {
    r: {
      kind: 'number',
      label: 'r',
      help: 'How strongly unique changes are reinforced.',
      default: 0.1,
      min: 0,
      max: 100,
      slider: { min: 0, max: 1, step: 0.01 },
    },
    alpha: {
      kind: 'number',
      label: 'α',
      help: 'Where the ratio of shared to unique changes stops counting.',
      default: 0.2,
      min: 0,
      max: 100,
      slider: { min: 0, max: 1, step: 0.01 },
    },
    epsilon: ramEpsilon,
  },
  modelParameters: {},
  compute: {
    ...ramCompute,
    recount({ epsilon, r, alpha }, models, counted) {
      const lambdas = models.map((_, i) => {
        const unique = counted[models.length + i]!;
        const shared = counted[i]! - unique;
        const ratio = shared / Math.max(unique, epsilon);
        return 1 + r * Math.min(Number.isNaN(ratio) ? 0 : ratio, alpha);
      });
      return ramCoefficients(epsilon, lambdas);
    },
  },
});
