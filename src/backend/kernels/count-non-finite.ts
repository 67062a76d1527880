import countNonFiniteWgsl from '../../../shaders/count-non-finite.wgsl?raw';
import { defineKernel } from '../kernel';

/** Adds the number of NaN and infinite elements to counts[slot]. See shaders/count-non-finite.wgsl. */
export const countNonFinite = defineKernel({
  id: 'count-non-finite',
  wgsl: countNonFiniteWgsl,
  params: { elements: 'u32', slot: 'u32' },
  buffers: { x: 'read', counts: 'read_write' },
  cpu({ params, u32 }) {
    const x = u32('x');
    let bad = 0;
    for (let e = 0; e < params.elements; e++) if ((x[e]! & 0x7f800000) === 0x7f800000) bad++;
    u32('counts')[params.slot]! += bad;
  },
});
