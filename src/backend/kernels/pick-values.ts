import pickValuesWgsl from '../../../shaders/pick-values.wgsl?raw';
import { defineKernel } from '../kernel';

/** Picks that one workgroup copies; as in shaders/pick-values.wgsl. */
export const PICKS_PER_GROUP = 64;

/** Chosen elements of a tensor, as far as they lie in the tile. See shaders/pick-values.wgsl. */
export const pickValues = defineKernel({
  id: 'pick-values',
  wgsl: pickValuesWgsl,
  params: { count: 'u32', first: 'u32', elements: 'u32', slot: 'u32', out: 'u32' },
  buffers: { values: 'read', picks: 'read', picked: 'read_write' },
  cpu({ params, u32 }) {
    const { count, first, elements, slot, out } = params;
    const values = u32('values');
    const picks = u32('picks');
    const picked = u32('picked');
    for (let i = 0; i < count; i++) {
      const at = picks[i]! - first;
      if (at >= 0 && at < elements) picked[out + i] = values[slot + at]!;
    }
  },
});
