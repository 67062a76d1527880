/** Options of finding the best merge. */
import type { Options } from '../reports/option';

export const bestOptions = {
  budget: {
    kind: 'number',
    argument: 'SECONDS',
    unit: 'seconds',
    help: 'What would take longer is not begun (seconds, or such as 2m).',
    default: 120,
    min: 0,
  },
  seed: { kind: 'integer', help: 'Seed of the search.', default: 0, min: 0 },
} as const satisfies Options;

/** What is searched for beside one value of each setting. */
export const searchOptions = {
  layers: {
    kind: 'integer',
    argument: 'N',
    help: 'Weights and t of the search are gradients of so many points over the layers.',
    min: 2,
  },
  kinds: {
    kind: 'boolean',
    help: 'λ of the search differs between norms, attention, MLPs and the rest.',
    default: false,
  },
  front: {
    kind: 'integer',
    argument: 'N',
    help: 'So many merges between two texts or tasks are searched for, from the best on the one to the best on the other.',
    min: 2,
  },
} as const satisfies Options;
