import maskByScoreWgsl from '../../../shaders/mask-by-score.wgsl?raw';
import { defineKernel } from '../kernel';

/** Zeros every task vector where the trimmed score is 0. See shaders/mask-by-score.wgsl. */
export const maskByScore = defineKernel({
  id: 'mask-by-score',
  wgsl: maskByScoreWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { score: 'read', values: 'read_write' },
  cpu({ params, u32 }) {
    const { elements, stride, models } = params;
    const score = u32('score');
    const values = u32('values');
    for (let i = 1; i <= models; i++) {
      const at = i * stride;
      for (let e = 0; e < elements; e++) if (score[e] === 0) values[at + e] = 0;
    }
  },
});
