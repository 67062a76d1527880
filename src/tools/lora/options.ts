/** Options of extracting a LoRA from the difference of two models. */

import { IMAGE_CONVENTIONS } from '../../formats/image-convention';
import type { RankChoice } from '../../reports/lora';
import type { Options, OptionValues } from '../../reports/option';

export const extractOptions = {
  rank: {
    kind: 'integer',
    argument: 'R',
    help: 'The same rank for every module; the smaller side where that is less.',
    ...{ min: 1, either: 'rank', start: 8 },
  },
  energy: {
    kind: 'number',
    argument: 'SHARE',
    help: 'The smallest rank of each module that holds this share of its ‖Δ‖².',
    label: 'share kept',
    ...{ above: 0, max: 1, either: 'rank', start: 0.95 },
  },
  cutoff: {
    kind: 'number',
    argument: 'RATIO',
    help: 'Singular values of each module down to this share of its largest.',
    label: 'at least σ₁ ×',
    ...{ above: 0, below: 1, either: 'rank', start: 0.01 },
  },
  budget: {
    kind: 'integer',
    argument: 'BYTES',
    unit: 'bytes',
    help: 'The ranks that capture most of the change in so many bytes (a number, or such as 20MB), over all modules together.',
    label: 'megabytes',
    ...{ min: 1, either: 'rank', start: 10_000_000 },
  },
  maxRank: {
    kind: 'integer',
    help: 'Most singular values of one module, where the rank is not given by number.',
    label: 'at most rank',
    default: 128,
    min: 1,
    when: { rank: [undefined] },
  },
  include: {
    kind: 'list',
    argument: 'PART',
    help: 'Parts of module paths: modules with any of them are carried.',
    label: 'only modules',
  },
  exclude: {
    kind: 'list',
    argument: 'PART',
    help: 'Parts of module paths: modules with any of them are left out.',
    label: 'not modules',
  },
  embeddings: {
    kind: 'choice',
    help: 'Changed embeddings and heads: whole, as factors, or left out.',
    label: 'embeddings and heads',
    values: ['save', 'lora', 'skip'],
    labels: ['whole (modules_to_save)', 'as factors', 'left out'],
    default: 'save',
  },
  vectors: {
    kind: 'choice',
    help: 'Changed norms and other vectors: whole or left out.',
    label: 'norms',
    values: ['save', 'skip'],
    labels: ['whole', 'left out'],
    default: 'save',
  },
  dtype: {
    kind: 'choice',
    help: 'Type of the factors.',
    label: 'dtype of the factors',
    values: ['F32', 'F16', 'BF16'],
    typed: ['float32', 'float16', 'bfloat16'],
    labels: ['F32', 'F16', 'BF16 (costs about 0.2 %)'],
    default: 'F32',
  },
  seed: { kind: 'integer', help: 'Seed of the randomized decompositions.', default: 0, min: 0 },
} as const satisfies Options;

/** Options of the LoRA place: of one LoRA as well as of two models. */
export const loraOptions = {
  subject: {
    kind: 'choice',
    only: 'studio',
    help: 'What the LoRA is made of.',
    values: ['one', 'several', 'two'],
    default: 'one',
  },
  resize: {
    kind: 'boolean',
    only: 'studio',
    help: 'Other ranks than it has.',
    label: 'change the ranks',
    default: false,
  },
  ...extractOptions,
  scale: {
    kind: 'number',
    help: 'Factor of the change of one LoRA.',
    default: 1,
  },
  format: {
    kind: 'choice',
    help: 'What reads the LoRA: PEFT, mlx_lm, or llama.cpp (base+lora); of an image model kohya’s tools, diffusers or ComfyUI, else those that read it before.',
    label: 'format',
    values: ['peft', 'mlx', 'gguf', ...IMAGE_CONVENTIONS],
    labels: ['as it is, or PEFT', 'MLX', 'GGUF for llama.cpp', 'kohya', 'diffusers', 'ComfyUI'],
    default: 'peft',
  },
} as const satisfies Options;

/** Choice of the rank of each module as given; null where it was not. */
export function rankOf({
  rank,
  energy,
  cutoff,
  budget,
}: OptionValues<typeof extractOptions>): RankChoice | null {
  if (rank !== undefined) return { kind: 'rank', rank };
  if (energy !== undefined) return { kind: 'energy', share: energy };
  if (cutoff !== undefined) return { kind: 'cutoff', ratio: cutoff };
  return budget === undefined ? null : { kind: 'bytes', bytes: budget };
}
