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
    help: 'Do modified matrices look like a LoRA? Those that may have their spectra computed.',
    label: 'LoRA analysis',
    default: true,
  },
  allSpectra: {
    kind: 'boolean',
    help: 'Spectra and stable ranks of all matrices, also of those proven to look like no LoRA: takes long.',
    label: 'all spectra',
    default: false,
    when: { loraAnalysis: [true] },
  },
  metric: {
    kind: 'choice',
    only: 'studio',
    help: 'The number that the chart shows.',
    values: ['relative', 'meanAbs', 'maxAbs', 'changedRatio', 'cosine', 'signFlipRatio', 'bitDifferentRatio'],
    default: 'relative',
  },
} as const satisfies Options;
