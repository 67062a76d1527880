import subtractWgsl from '../../../shaders/subtract.wgsl?raw';
import { BLOCK, defineKernel } from '../kernel';

/** τ = W − W₀ in place, slot 0 being W₀. See shaders/subtract.wgsl. */
export const subtract = defineKernel({
  id: 'subtract',
  wgsl: subtractWgsl,
  params: { elements: 'u32', slot: 'u32' },
  buffers: { values: 'read_write' },
  unit: () => BLOCK,
  wasm(k, { params, at, begin, n }) {
    k.subtract(at('values') + (params.slot + begin) * 4, at('values') + begin * 4, n);
  },
});
