import sparseRowsWgsl from '../../../shaders/sparse-rows.wgsl?raw';
import { defineKernel } from '../kernel';

/** What rises above a row's mean by some deviations, in place. See shaders/sparse-rows.wgsl. */
export const sparseRows = defineKernel({
  id: 'sparse-rows',
  wgsl: sparseRowsWgsl,
  params: { rows: 'u32', width: 'u32', stride: 'u32', deviations: 'f32' },
  buffers: { x: 'read_write' },
  cpu({ params: { rows, width, stride, deviations }, f32 }) {
    const x = f32('x');
    for (let r = 0; r < rows; r++) {
      const row = x.subarray(r * stride, r * stride + width);
      const mean = row.reduce((sum, v) => sum + v, 0) / width;
      const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / width;
      const bound = mean + deviations * Math.sqrt(variance);
      for (let i = 0; i < width; i++) row[i] = Math.max(0, row[i]! - bound);
    }
  },
});
