/** Options of writing one model in another form. */
import { GGUF_TYPES } from '../../formats/gguf-type';
import { DEFAULT_SHARD_BYTES } from '../../formats/recipe';
import type { Options } from '../../reports/option';

export const convertOptions = {
  dtype: {
    kind: 'choice',
    help: 'Type of the weights; without, each tensor keeps its own.',
    label: 'dtype',
    values: ['same', 'bfloat16', 'float16', 'float32'],
    labels: ['as it is', 'bfloat16', 'float16', 'float32'],
    default: 'same',
  },
  gguf: {
    kind: 'choice',
    help: 'Writes it for llama.cpp too, as this type.',
    label: 'GGUF for llama.cpp',
    values: ['none', ...GGUF_TYPES],
    default: 'none',
  },
  ggufOnly: {
    kind: 'boolean',
    help: 'Writes nothing but the file for llama.cpp.',
    label: 'GGUF only',
    default: false,
    when: { gguf: GGUF_TYPES },
  },
  shardBytes: {
    kind: 'integer',
    flag: 'shard-size',
    unit: 'bytes',
    help: 'Most bytes of one file of weights (a number, or such as 5GB); browsers save several sooner than one.',
    label: 'shard size in MB',
    default: DEFAULT_SHARD_BYTES,
    min: 1_000_000,
    when: { ggufOnly: [false] },
  },
} as const satisfies Options;
