/** Options of writing a mixture of experts; what it is made of is in its recipe. */
import type { Options } from '../../reports/option';
import { convertOptions } from '../convert/options';

const { gguf, ggufOnly, shardBytes } = convertOptions;

export const moeOptions = {
  recipe: {
    kind: 'text',
    help: 'The recipe of experts, as YAML of mergekit-moe.',
    only: 'studio',
  },
  ...{ gguf, ggufOnly, shardBytes },
} as const satisfies Options;
