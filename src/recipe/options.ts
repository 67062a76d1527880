/** Options of finding the best merge. */
import type { Options } from '../reports/option';

export const bestOptions = {
  budget: {
    kind: 'number',
    argument: 'SECONDS',
    help: 'What would take longer is not begun.',
    default: 120,
    min: 0,
  },
  seed: { kind: 'integer', help: 'Seed of the search.', default: 0, min: 0 },
} as const satisfies Options;
