import rearrangeWgsl from '../../../shaders/rearrange.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** A matrix transposed, or back to front. See shaders/rearrange.wgsl. */
export const rearrange = defineKernel({
  id: 'rearrange',
  wgsl: composeWgsl(rearrangeWgsl),
  params: { rows: 'u32', cols: 'u32', reversed: 'u32' },
  buffers: { x: 'read', y: 'read_write' },
  cpu({ params, u32 }) {
    const { rows, cols, reversed } = params;
    const x = u32('x');
    const y = u32('y');
    const n = rows * cols;
    for (let e = 0; e < n; e++) {
      y[e] = x[reversed === 1 ? n - 1 - e : (e % rows) * cols + Math.floor(e / rows)]!;
    }
  },
});
