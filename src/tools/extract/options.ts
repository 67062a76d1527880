/** Options of extracting a LoRA from the difference of two models. */
import type { Options } from '../../reports/option';

/** How many singular values of each module are kept: one of these is given. */
export const rankOptions = {
  rank: { kind: 'integer', argument: 'R', help: 'Singular values of each module.', min: 1 },
  energy: {
    kind: 'number',
    argument: 'SHARE',
    help: 'The share of ‖Δ‖² that is kept at least.',
    above: 0,
    max: 1,
  },
  cutoff: {
    kind: 'number',
    argument: 'RATIO',
    help: 'Singular values down to this share of the largest are kept.',
    above: 0,
    below: 1,
  },
  budget: {
    kind: 'integer',
    argument: 'BYTES',
    help: 'What captures most in so many bytes of adapter weights.',
    min: 1,
  },
} as const satisfies Options;

export const extractOptions = {
  maxRank: {
    kind: 'integer',
    help: 'Most singular values of one module, where the rank is not given by number.',
    default: 128,
    min: 1,
  },
  include: {
    kind: 'list',
    argument: 'PART',
    help: 'Parts of module paths: modules with any of them are carried.',
  },
  exclude: {
    kind: 'list',
    argument: 'PART',
    help: 'Parts of module paths: modules with any of them are left out.',
  },
  embeddings: {
    kind: 'choice',
    help: 'Changed embeddings and heads: whole, as factors, or left out.',
    values: ['save', 'lora', 'skip'],
    default: 'save',
  },
  vectors: {
    kind: 'choice',
    help: 'Changed norms and other vectors: whole or left out.',
    values: ['save', 'skip'],
    default: 'save',
  },
  dtype: {
    kind: 'choice',
    help: 'Type of the factors.',
    values: ['F32', 'F16', 'BF16'],
    typed: ['float32', 'float16', 'bfloat16'],
    default: 'F32',
  },
  seed: { kind: 'integer', help: 'Seed of the randomized decompositions.', default: 0, min: 0 },
} as const satisfies Options;
