import { defineMethod } from '../method';

/** Copies one model (per slice), optionally scaled: layer stacking. mergekit 0.1.4 `passthrough.py`. */
export const passthrough = defineMethod({
  id: 'passthrough',
  title: 'Passthrough — copy or stack layers',
  summary:
    'Takes the tensors of one model as they are, optionally scaled; with slices, stacks layers of several.',
  formula: 'W = s · W₁',
  reference: { label: 'mergekit', url: 'https://github.com/arcee-ai/mergekit' },
  base: 'none',
  models: { min: 1, max: 1 },
  parameters: {},
  modelParameters: {
    scale: {
      kind: 'number',
      label: 'scale',
      help: 'Multiplies the tensor; 1 copies it byte for byte.',
      default: 1,
      min: -100,
      max: 100,
      slider: { min: 0, max: 2, step: 0.01 },
    },
  },
  compute: { kind: 'weights', coefficients: (models) => models.map((m) => m.scale) },
});
