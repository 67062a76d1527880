/** Options of scoring models on tasks. */
import type { Options } from '../reports/option';

/** Options for the items that are scored, and their prompts. */
export const itemOptions = {
  limit: {
    kind: 'integer',
    argument: 'N',
    help: 'At most so many items of each task; without, all.',
    min: 1,
  },
  sampleSeed: {
    kind: 'integer',
    argument: 'S',
    help: 'Draws the items at random; without, the first are taken.',
    min: 0,
  },
  fewshot: {
    kind: 'integer',
    argument: 'K',
    help: 'Solved examples before each item; without, as many as the task says.',
    min: 0,
  },
} as const satisfies Options;

export const taskOptions = {
  ...itemOptions,
  fewshotSeed: { kind: 'integer', help: 'Seed of the draw of the examples.', default: 1234, min: 0 },
} as const satisfies Options;
