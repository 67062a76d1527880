/** Options of searching for the settings of a recipe. */
import type { Options } from '../reports/option';

export const searchOptions = {
  evaluations: {
    kind: 'integer',
    help: 'Merges to measure; the first is the recipe as it is.',
    default: 60,
    min: 2,
  },
  seed: { kind: 'integer', help: 'Seed of the search.', default: 0, min: 0 },
} as const satisfies Options;
