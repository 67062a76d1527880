import rowScoreWgsl from '../../../shaders/row-score.wgsl?raw';
import { exact } from '../exact';
import { defineKernel } from '../kernel';

/** |v| times a factor per row. See shaders/row-score.wgsl. */
export const rowScore = defineKernel({
  id: 'row-score',
  wgsl: rowScoreWgsl,
  params: { elements: 'u32', slot: 'u32', cols: 'u32' },
  buffers: { values: 'read', factor: 'read', score: 'read_write' },
  cpu({ params, f32 }) {
    const { elements, slot, cols } = params;
    const values = f32('values');
    const factor = f32('factor');
    const score = f32('score');
    for (let row = 0, e = 0; e < elements; row++) {
      const f = factor[row]!;
      for (const end = Math.min(e + cols, elements); e < end; e++) {
        score[e] = exact(Math.abs(values[slot + e]!) * f);
      }
    }
  },
});
