import { defineMethod, type ElementwiseCompute, type NumberSpec } from '../method';

export const ramEpsilon: NumberSpec = {
  kind: 'number',
  label: 'ε',
  help: 'Changes up to this size count as none.',
  default: 1e-5,
  min: 0,
  max: 1,
  slider: { min: 0, max: 0.01, step: 0.0001 },
};

/** Coefficients of the kernel: [ε, 1/1 … 1/n, λ of every model]. */
export function ramCoefficients(epsilon: number, lambdas: readonly number[]): number[] {
  return [epsilon, ...lambdas.map((_, i) => 1 / (i + 1)), ...lambdas];
}

/** Every λ is 1. */
export const ramCompute: ElementwiseCompute<{ epsilon: number }> = {
  kind: 'elementwise',
  form: 'delta',
  kernel: async () => (await import('./ram.kernel')).kernel,
  coefficients: ({ epsilon }, models) =>
    ramCoefficients(
      epsilon,
      models.map(() => 1),
    ),
  counters: (models) => 2 * models,
};

/** Reinforced Agent Merging 2026; mergekit 0.1.4 `ram.py`: unique changes are added whole, shared ones averaged. */
export const ram = defineMethod({
  id: 'ram',
  title: 'RAM — unique changes whole, shared ones averaged',
  summary: 'Adds a change that only one model made as it is, and the mean of those that several made.',
  formula: 'W = W₀ + mean of the τᵢ with |τᵢ| > ε',
  reference: { label: 'Reinforced Agent Merging 2026', url: 'https://arxiv.org/abs/2601.13572' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: { epsilon: ramEpsilon },
  modelParameters: {},
  compute: ramCompute,
});
