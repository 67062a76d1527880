import columnScoreWgsl from '../../../shaders/column-score.wgsl?raw';
import { exact } from '../exact';
import { defineKernel } from '../kernel';

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** Keys of |τ| times a factor per column, block of columns by block. See shaders/column-score.wgsl. */
export const columnScore = defineKernel({
  id: 'column-score',
  wgsl: columnScoreWgsl,
  params: { rows: 'u32', cols: 'u32', block: 'u32' },
  buffers: { values: 'read', scale: 'read', keys: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, cols, block } = params;
    const values = f32('values');
    const scale = f32('scale');
    const keys = u32('keys');
    let at = 0;
    for (let first = 0; first < cols; first += block) {
      const end = Math.min(first + block, cols);
      for (let r = 0; r < rows; r++) {
        for (let c = first; c < end; c++) {
          float[0] = exact(Math.abs(values[r * cols + c]!) * scale[c]!);
          keys[at++] = bits[0]! + 1;
        }
      }
    }
  },
});
