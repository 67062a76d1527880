import selectMaskWgsl from '../../../shaders/select-mask.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Trim in place by a mask of one bit per element. See shaders/select-mask.wgsl. */
export const selectMask = defineKernel({
  id: 'select-mask',
  wgsl: composeWgsl(selectMaskWgsl),
  params: { elements: 'u32', slot: 'u32' },
  buffers: { mask: 'read', values: 'read_write' },
  cpu({ params, u32 }) {
    const { elements, slot } = params;
    const mask = u32('mask');
    const values = u32('values');
    for (let e = 0; e < elements; e++) {
      if (((mask[e >>> 5]! >>> (e & 31)) & 1) === 0) values[slot + e] = 0;
    }
  },
});
