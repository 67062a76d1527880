import ramWgsl from '../../../shaders/ram.wgsl?raw';
import { exact } from '../../backend/exact';
import { defineKernel } from '../../backend/kernel';

/**
 * W₀ + mean of the active changes, or λᵢ times the one that is active alone. Coefficients: ε, 1/1 … 1/n, λ₁ … λₙ;
 * counters: elements active in each model, then those active in it alone. See shaders/ram.wgsl.
 */
export const kernel = defineKernel({
  id: 'ram',
  wgsl: ramWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { values: 'f32', coefficients: 'f32', out: 'rw u32', counters: 'rw atomic<u32>' },
  cpu({ params, f32, u32 }) {
    const { elements, stride, models } = params;
    const values = f32('values');
    const bits = u32('values');
    const out = f32('out');
    const outBits = u32('out');
    const coefficients = f32('coefficients');
    const counters = u32('counters');
    const epsilon = coefficients[0]!;
    for (let e = 0; e < elements; e++) {
      let active = 0;
      let last = 0;
      let sum = 0;
      for (let i = 0; i < models; i++) {
        const v = values[(i + 1) * stride + e]!;
        if (Math.abs(v) <= epsilon) continue; // NaN is active: it has to come through
        active++;
        last = i;
        sum = exact(sum + v);
        counters[i]!++;
      }
      if (active === 1) counters[models + last]!++;
      const factor = active === 1 ? coefficients[1 + models + last]! : coefficients[active]!;
      const delta = active === 0 ? 0 : exact(sum * factor);
      if (delta === 0) outBits[e] = bits[e]!;
      else out[e] = exact(values[e]! + delta);
    }
  },
});
