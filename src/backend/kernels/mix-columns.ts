import mixColumnsWgsl from '../../../shaders/mix-columns.wgsl?raw';
import { defineKernel } from '../kernel';

/** A share of a deviation, its size by column. See shaders/mix-columns.wgsl. */
export const mixColumns = defineKernel({
  id: 'mix-columns',
  wgsl: mixColumnsWgsl,
  params: { elements: 'u32', cols: 'u32' },
  buffers: { x: 'read', reference: 'read', factor: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { elements, cols } = params;
    const x = f32('x');
    const reference = f32('reference');
    const factor = f32('factor');
    const y = f32('y');
    for (let e = 0; e < elements; e++) y[e]! += factor[e % cols]! * (x[e]! - reference[e]!);
  },
});
