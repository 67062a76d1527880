/** Parameter specs that several methods share, so that a label or a bound is written once. */
import type { BooleanSpec, ChoiceSpec, NumberSpec } from '../method';

export const weight: NumberSpec = {
  kind: 'number',
  label: 'weight',
  help: 'How strongly this model counts. Negative weights subtract what the model learnt.',
  min: -100,
  max: 100,
  slider: { min: -1, max: 2, step: 0.01 },
};

export const density: NumberSpec = {
  kind: 'number',
  label: 'density',
  help: 'Share of this model’s changes that is kept, in every tensor.',
  default: 1,
  min: 0,
  max: 1,
  slider: { min: 0, max: 1, step: 0.01 },
};

export const lambda: NumberSpec = {
  kind: 'number',
  label: 'λ',
  help: 'Scales the merged change before it is added to the base.',
  default: 1,
  min: -100,
  max: 100,
  slider: { min: 0, max: 2, step: 0.01 },
};

export function normalize(byDefault: boolean): BooleanSpec {
  return {
    kind: 'boolean',
    label: 'normalize',
    help: 'Divide by the sum of the weights that took part.',
    default: byDefault,
  };
}

export function rescale(byDefault: 'none' | 'l1'): ChoiceSpec {
  return {
    kind: 'choice',
    label: 'rescale',
    help: 'What the kept changes are multiplied by, to make up for those dropped.',
    default: byDefault,
    choices: [
      { value: 'none', label: 'none' },
      { value: '1/density', label: '1 / density (paper)' },
      { value: 'l1', label: 'match ‖τ‖₁ (mergekit)' },
    ],
    booleans: { true: 'l1', false: 'none' },
  };
}

export const int8Mask: BooleanSpec = {
  kind: 'boolean',
  label: 'int8_mask',
  help: 'A memory setting of mergekit without effect on the result.',
  default: false,
  inert: true,
};
