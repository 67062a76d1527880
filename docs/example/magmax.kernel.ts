import { exact } from '../../src/backend/exact';
import { defineKernel } from '../../src/backend/kernel';
import magmaxWgsl from './magmax.wgsl?raw';

export const kernel = defineKernel({
  id: 'magmax',
  wgsl: magmaxWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { values: 'f32', coefficients: 'f32', out: 'rw u32', counters: 'rw atomic<u32>' },
  cpu({ params, f32, u32 }) {
    const { elements, stride, models } = params;
    const values = f32('values');
    const lambda = f32('coefficients')[0]!;
    for (let e = 0; e < elements; e++) {
      let best = 0;
      for (let i = 1; i < models; i++) {
        const size = Math.abs(values[(i + 1) * stride + e]!);
        if (size > Math.abs(values[(best + 1) * stride + e]!)) best = i;
      }
      u32('counters')[best]!++;
      const delta = exact(values[(best + 1) * stride + e]! * lambda);
      if (delta === 0) u32('out')[e] = u32('values')[e]!;
      else f32('out')[e] = exact(values[e]! + delta);
    }
  },
});
