/** Options of comparing two models. */
import type { Options } from '../../reports/option';

export const compareOptions = {
  threshold: {
    kind: 'number',
    help: 'An element with |Δ| above it counts as changed.',
    default: 1e-6,
    min: 0,
  },
  top: { kind: 'integer', help: 'Rows of the tables of most changed tensors.', default: 20, min: 0 },
  loraAnalysis: {
    kind: 'boolean',
    flag: 'no-lora-analysis',
    help: 'Leaves out the spectra of modified matrices; the stable rank is computed always.',
    default: true,
  },
  timeEngines: { kind: 'boolean', help: 'Measures every tensor on the other engine too.', default: false },
} as const satisfies Options;
