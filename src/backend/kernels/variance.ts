import varianceWgsl from '../../../shaders/variance.wgsl?raw';
import { exact } from '../exact';
import { defineKernel } from '../kernel';

/** n² times the population variance of the task vectors at every element. See shaders/variance.wgsl. */
export const variance = defineKernel({
  id: 'variance',
  wgsl: varianceWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { values: 'read', score: 'read_write' },
  cpu({ params, f32 }) {
    const { elements, stride, models } = params;
    const values = f32('values');
    const score = f32('score');
    for (let e = 0; e < elements; e++) {
      let sum = 0;
      for (let i = 1; i < models; i++) {
        for (let j = i + 1; j <= models; j++) {
          const d = exact(values[i * stride + e]! - values[j * stride + e]!);
          sum = exact(sum + exact(d * d));
        }
      }
      score[e] = sum;
    }
  },
});
