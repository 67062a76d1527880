import scatterRowsWgsl from '../../../shaders/scatter-rows.wgsl?raw';
import { defineKernel } from '../kernel';

/** Weighted rows added to others. See shaders/scatter-rows.wgsl. */
export const scatterRows = defineKernel({
  id: 'scatter-rows',
  wgsl: scatterRowsWgsl,
  params: { rows: 'u32', width: 'u32', x_stride: 'u32', y_stride: 'u32' },
  buffers: { x: 'read', picks: 'read', factors: 'read', y: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, width, x_stride, y_stride } = params;
    const [x, factors, y] = [f32('x'), f32('factors'), f32('y')];
    const picks = u32('picks');
    for (let r = 0; r < rows; r++) {
      const to = picks[r]! * y_stride;
      for (let i = 0; i < width; i++) y[to + i]! += factors[r]! * x[r * x_stride + i]!;
    }
  },
});
