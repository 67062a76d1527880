import copyColumnsWgsl from '../../../shaders/copy-columns.wgsl?raw';
import { defineKernel } from '../kernel';

/** A part of a matrix into a part of another. See shaders/copy-columns.wgsl. */
export const copyColumns = defineKernel({
  id: 'copy-columns',
  wgsl: copyColumnsWgsl,
  params: {
    rows: 'u32',
    cols: 'u32',
    x_first: 'u32',
    x_stride: 'u32',
    x_begin: 'u32',
    y_first: 'u32',
    y_stride: 'u32',
    y_begin: 'u32',
    add: 'u32',
    scale: 'f32',
  },
  buffers: { x: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { rows, cols, x_first, x_stride, x_begin, y_first, y_stride, y_begin, add, scale } = params;
    const x = f32('x');
    const y = f32('y');
    for (let r = 0; r < rows; r++) {
      const from = (x_first + r) * x_stride + x_begin;
      const to = (y_first + r) * y_stride + y_begin;
      if (add === 1) for (let c = 0; c < cols; c++) y[to + c] = y[to + c]! + scale * x[from + c]!;
      else if (scale === 1) y.set(x.subarray(from, from + cols), to);
      else for (let c = 0; c < cols; c++) y[to + c] = scale * x[from + c]!;
    }
  },
});
