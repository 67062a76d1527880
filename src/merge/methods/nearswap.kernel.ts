import nearswapWgsl from '../../../shaders/nearswap.wgsl?raw';
import { exact } from '../../backend/exact';
import { defineKernel } from '../../backend/kernel';

export const kernel = defineKernel({
  id: 'nearswap',
  wgsl: nearswapWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { values: 'f32', coefficients: 'f32', out: 'rw u32' },
  cpu({ params, f32, u32 }) {
    const { elements, stride } = params;
    const values = f32('values');
    const bits = u32('values');
    const out = f32('out');
    const outBits = u32('out');
    const t = f32('coefficients')[0]!;
    for (let e = 0; e < elements; e++) {
      const d = exact(values[stride + e]! - values[e]!);
      if (bits[stride + e] === bits[e] || Math.abs(d) <= t) outBits[e] = bits[stride + e]!;
      else out[e] = exact(values[e]! + (d > 0 ? t : d < 0 ? -t : d));
    }
  },
});
