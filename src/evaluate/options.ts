/** Options of running a model: measuring its perplexity, and writing with it. */
import { KEPT_WEIGHTS } from '../reports/evaluate';
import type { Options } from '../reports/option';

/** How a text is cut into windows. */
export const protocolOptions = {
  window: { kind: 'integer', help: 'Tokens the model sees at once.', default: 256, min: 2 },
  stride: { kind: 'integer', help: 'Tokens by which windows advance.', default: 128, min: 1 },
} as const satisfies Options;

const weightsOption = {
  weights: {
    kind: 'choice',
    values: KEPT_WEIGHTS,
    help: 'How weights are kept in memory: 8-bit is as Q8_0; auto takes it where they do not fit as stored.',
    default: 'auto',
  },
} as const satisfies Options;

export const evaluateOptions = {
  ...protocolOptions,
  perToken: { kind: 'boolean', help: 'The report has the loss of every token.', default: false },
  ...weightsOption,
} as const satisfies Options;

/** How much of a dataset is taken. */
export const datasetOptions = {
  rows: { kind: 'integer', argument: 'N', help: 'The first rows of the file.', min: 1 },
  characters: { kind: 'integer', help: 'At most so many characters.', default: 200_000, min: 1 },
} as const satisfies Options;

export const generateOptions = {
  maxTokens: {
    kind: 'integer',
    label: 'tokens',
    help: 'At most so many tokens are written.',
    default: 64,
    min: 1,
  },
  temperature: { kind: 'number', help: '0 takes the most probable token always.', default: 0, min: 0 },
  topP: {
    kind: 'number',
    label: 'top-p',
    help: 'Tokens are drawn from the most probable that make up this share.',
    default: 1,
    above: 0,
    max: 1,
  },
  seed: { kind: 'integer', help: 'Seed of the draws.', default: 0, min: 0 },
  ...weightsOption,
} as const satisfies Options;
