import rearrangeWgsl from '../../../shaders/rearrange.wgsl?raw';
import { defineKernel } from '../kernel';

/** Columns that are turned together on the processor. */
const COLUMNS = 16;

/** A matrix transposed. See shaders/rearrange.wgsl. */
export const rearrange = defineKernel({
  id: 'rearrange',
  wgsl: rearrangeWgsl,
  params: { rows: 'u32', cols: 'u32' },
  buffers: { x: 'read', y: 'read_write' },
  cpu({ params, u32 }) {
    const { rows, cols } = params;
    const x = u32('x');
    const y = u32('y');
    // few columns at a time: their lines of y stay in the cache
    for (let begin = 0; begin < cols; begin += COLUMNS) {
      const end = Math.min(cols, begin + COLUMNS);
      for (let r = 0; r < rows; r++) {
        for (let c = begin, at = r * cols; c < end; c++) y[c * rows + r] = x[at + c]!;
      }
    }
  },
});
