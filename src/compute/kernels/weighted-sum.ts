import weightedSumWgsl from '../../../shaders/weighted-sum.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Σ c_i · v_i, terms with c_i = 0 left out. See shaders/weighted-sum.wgsl. */
export const weightedSum = defineKernel({
  id: 'weighted-sum',
  wgsl: composeWgsl(weightedSumWgsl),
  params: { elements: 'u32', slot: 'u32', stride: 'u32', count: 'u32' },
  buffers: { values: 'read', coefficients: 'read', out: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { elements, slot, stride, count } = params;
    const values = f32('values');
    const bits = u32('values');
    const coefficients = f32('coefficients');
    const out = f32('out');
    const outBits = u32('out');
    let first = true;
    for (let i = 0; i < count; i++) {
      const c = coefficients[i]!;
      const at = slot + i * stride;
      if (c === 0) continue;
      if (first && c === 1) outBits.set(bits.subarray(at, at + elements));
      else if (first) for (let e = 0; e < elements; e++) out[e] = values[at + e]! * c;
      else for (let e = 0; e < elements; e++) out[e] = out[e]! + Math.fround(values[at + e]! * c);
      first = false;
    }
    if (first) outBits.fill(0, 0, elements);
  },
});
