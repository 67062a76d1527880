import { defineMethod } from '../method';

/**
 * NearSwap (alchemonaut 2024); mergekit 0.1.4 `nearswap.py`: W₀ + clamp(t / |τ|, 0, 1) · τ, which is W where |τ| ≤ t and
 * W₀ ± t elsewhere, so that nothing is divided.
 */
export const nearswap = defineMethod({
  id: 'nearswap',
  title: 'NearSwap — adopt what is close',
  summary:
    'Takes the other model’s weights where they are within t of the base, and moves by t toward them elsewhere.',
  formula: 'W = W₀ + clamp(t / |τ|, 0, 1) · τ',
  reference: {
    label: 'alchemonaut 2024',
    url: 'https://huggingface.co/alchemonaut/QuartetAnemoi-70B-t0.0001',
  },
  base: 'required',
  models: { min: 1, max: 1 },
  parameters: {
    t: {
      kind: 'number',
      label: 't',
      help: 'The largest step a weight may take from the base.',
      min: 0,
      max: 100,
      slider: { min: 0, max: 0.05, step: 0.0001 },
    },
  },
  modelParameters: {},
  validate: ({ t }) =>
    t > 0 ? undefined : { reason: 't must be above 0', remedy: 'Choose a step such as 0.001.' },
  compute: {
    kind: 'elementwise',
    form: 'weights',
    kernel: async () => (await import('./nearswap.kernel')).kernel,
    coefficients: ({ t }) => [t],
  },
});
