import rowScaleWgsl from '../../../shaders/row-scale.wgsl?raw';
import { exact } from '../exact';
import { defineKernel } from '../kernel';

/** V[row, :] ← factor[row] · V[row, :] in place. See shaders/row-scale.wgsl. */
export const rowScale = defineKernel({
  id: 'row-scale',
  wgsl: rowScaleWgsl,
  params: { elements: 'u32', cols: 'u32', slot: 'u32' },
  buffers: { factor: 'read', values: 'read_write' },
  cpu({ params, f32 }) {
    const { elements, cols, slot } = params;
    const factor = f32('factor');
    const values = f32('values');
    for (let row = 0, e = 0; e < elements; row++) {
      const f = factor[row]!;
      for (const end = Math.min(e + cols, elements); e < end; e++) {
        values[slot + e] = exact(values[slot + e]! * f);
      }
    }
  },
});
