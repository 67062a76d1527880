/** Options of comparing two models. */
import type { Options } from '../../reports/option';

export const compareOptions = {
  threshold: {
    kind: 'number',
    help: 'An element with |Δ| above it counts as changed.',
    label: 'changed above',
    default: 1e-6,
    min: 0,
  },
  loraAnalysis: {
    kind: 'boolean',
    flag: 'no-lora-analysis',
    help: 'Spectra of modified matrices: does the change look like a LoRA? The stable rank is computed always.',
    label: 'LoRA analysis',
    default: true,
  },
  metric: {
    kind: 'choice',
    only: 'studio',
    help: 'The number that the chart shows.',
    values: ['relative', 'meanAbs', 'maxAbs', 'changedRatio', 'cosine', 'signFlipRatio', 'bitDifferentRatio'],
    default: 'relative',
  },
} as const satisfies Options;
