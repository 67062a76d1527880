import gatherRowsWgsl from '../../../shaders/gather-rows.wgsl?raw';
import { defineKernel } from '../kernel';

/** Chosen rows side by side. See shaders/gather-rows.wgsl. */
export const gatherRows = defineKernel({
  id: 'gather-rows',
  wgsl: gatherRowsWgsl,
  params: { rows: 'u32', width: 'u32' },
  buffers: { x: 'read', picks: 'read', y: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, width } = params;
    const x = f32('x');
    const y = f32('y');
    const picks = u32('picks');
    for (let r = 0; r < rows; r++) y.set(x.subarray(picks[r]! * width, (picks[r]! + 1) * width), r * width);
  },
});
