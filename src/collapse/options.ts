/** Options of measuring and collapsing layers. */
import type { Options } from '../reports/option';

export const calibrationOptions = {
  perLine: { kind: 'boolean', help: 'Each line of the text files is a text of its own.', default: false },
  window: {
    kind: 'integer',
    help: 'Tokens run at once; longer texts are cut into windows that do not overlap.',
    default: 256,
    min: 2,
  },
} as const satisfies Options;

/** How many layers go: one of these. */
export const targetOptions = {
  remove: { kind: 'integer', argument: 'N', help: 'Layers that go.', min: 1 },
  ratio: { kind: 'number', argument: 'SHARE', help: 'Share of all layers that goes.', above: 0, below: 1 },
} as const satisfies Options;

export const plannerOptions = {
  planner: {
    kind: 'choice',
    help: 'How layers are chosen: greedily by similarity, by block influence, or by angular distance.',
    values: ['laco', 'influence', 'angular'],
    default: 'laco',
  },
  threshold: {
    kind: 'number',
    argument: 'T',
    help: 'Similarity that a collapsed block leaves (0.75), or influence or distance of what goes.',
    min: -1,
  },
  allTokens: {
    kind: 'boolean',
    help: 'Angular distances are means over all tokens, not over the last ones.',
    default: false,
  },
} as const satisfies Options;

/** The threshold of the greedy loop where none is given. */
export const LACO_THRESHOLD = 0.75;

/** Of the greedy loop. */
export const lacoOptions = {
  block: { kind: 'integer', help: 'Layers that become one.', default: 3, min: 2 },
  lowest: { kind: 'integer', help: 'The lowest layer where a block is tried.', default: 0, min: 0 },
  highest: {
    kind: 'integer',
    argument: 'LAST',
    help: 'The highest layer where a block is tried; without, the last.',
    min: 0,
  },
  interval: { kind: 'integer', help: 'Layers to go down after a block was collapsed.', default: 2, min: 1 },
} as const satisfies Options;

/** What becomes of the layers of a block. */
export const kindOptions = {
  variant: {
    kind: 'choice',
    help: 'What becomes of the layers; without, rdsc for laco and drop for the others.',
    values: ['rdsc', 'replace-last', 'mean', 'drop'],
  },
  parts: {
    kind: 'choice',
    help: 'Which tensors take part.',
    values: ['linear', 'full', 'attention', 'mlp'],
    default: 'linear',
  },
} as const satisfies Options;
