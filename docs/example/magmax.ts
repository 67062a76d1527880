import { exact } from '../../src/backend/exact';
import { defineKernel } from '../../src/backend/kernel';
import { defineMethod } from '../../src/merge/method';
import { lambda } from '../../src/merge/methods/parameters';
import magmaxWgsl from './magmax.wgsl?raw';

const kernel = defineKernel({
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

/** MagMax, Marczak et al. 2024: of all changes to a weight, the largest. */
export const magmax = defineMethod({
  id: 'magmax',
  title: 'MagMax — the largest change wins',
  summary: 'Takes, weight by weight, the largest change that any model made.',
  formula: 'W = W₀ + λ · τᵢ with the largest |τᵢ|',
  reference: { label: 'Marczak et al. 2024', url: 'https://arxiv.org/abs/2407.06322' },
  base: 'required',
  models: { min: 1, max: 16 },
  parameters: { lambda },
  modelParameters: {},
  compute: {
    kind: 'elementwise',
    form: 'delta',
    kernel,
    coefficients: ({ lambda }) => [lambda],
    counters: (models) => models,
  },
});
