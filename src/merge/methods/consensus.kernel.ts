import consensusWgsl from '../../../shaders/consensus.wgsl?raw';
import { exact } from '../../backend/exact';
import { defineKernel } from '../../backend/kernel';

/** W₀ + λ · Σ τᵢ where enough models claim the element. Coefficients: t, k, λ. See shaders/consensus.wgsl. */
export const kernel = defineKernel({
  id: 'consensus',
  wgsl: consensusWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { values: 'f32', coefficients: 'f32', out: 'rw u32', counters: 'rw atomic<u32>' },
  cpu({ params, f32, u32 }) {
    const { elements, stride, models } = params;
    const values = f32('values');
    const [t, k, lambda] = f32('coefficients') as unknown as [number, number, number];
    let kept = 0;
    for (let e = 0; e < elements; e++) {
      let sum = 0;
      for (let i = 1; i <= models; i++) sum = exact(sum + values[i * stride + e]!);
      let claims = 0;
      for (let i = 1; i <= models; i++) {
        const v = values[i * stride + e]!;
        if (Math.abs(v) >= exact(t * Math.abs(exact(sum - v)))) claims++;
      }
      const delta = claims >= k || !Number.isFinite(sum) ? exact(sum * lambda) : 0;
      if (delta !== 0) kept++;
      if (delta === 0) u32('out')[e] = u32('values')[e]!;
      else f32('out')[e] = exact(values[e]! + delta);
    }
    for (let i = 0; i < models; i++) u32('counters')[i]! += kept;
  },
});
