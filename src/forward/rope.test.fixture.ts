/** Scaled rotary positions on the llama golden: yarn and longrope, whose tables no golden of transformers has. */

import { goldenFolder } from '../../e2e/goldens';
import { parseModelConfig } from '../formats/model-config';
import type { Architecture } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';

export const LLAMA_CONFIG = `${goldenFolder('forward')}/llama/config.json`;
export const YARN = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64 };
export const LONG = {
  rope_type: 'longrope',
  short_factor: [1, 1, 1, 1],
  long_factor: [1, 2, 4, 8],
  original_max_position_embeddings: 16,
};

/** The architecture of a config.json with these rotary parameters instead of its own. */
export function withRope(config: string, rope: object, more: object = {}): Architecture {
  const changed = {
    ...(JSON.parse(config) as object),
    rope_parameters: { rope_theta: 10_000, ...rope },
    ...more,
  };
  return resolveArchitecture(parseModelConfig(JSON.stringify(changed), 'config.json'));
}
