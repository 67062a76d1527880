import { defineMethod } from '../../src/merge/method';
import { lambda } from '../../src/merge/methods/parameters';

/** MagMax, Marczak et al. 2024: of all changes to a weight, the largest. */
export const magmax = defineMethod({
  id: 'magmax',
  title: 'MagMax — the largest change wins',
  summary: 'Takes, weight by weight, the largest change that any model made.',
  formula: 'W = W₀ + λ · τᵢ with the largest |τᵢ|',
  reference: { label: 'Marczak et al. 2024', url: 'https://arxiv.org/abs/2407.06322' },
  base: 'required',
  models: { min: 1, max: 16 },
  parameters: { lambda },
  modelParameters: {},
  compute: {
    kind: 'elementwise',
    form: 'delta',
    kernel: async () => (await import('./magmax.kernel')).kernel,
    coefficients: ({ lambda }) => [lambda],
    counters: (models) => models,
  },
});
