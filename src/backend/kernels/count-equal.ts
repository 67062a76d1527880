import countEqualWgsl from '../../../shaders/count-equal.wgsl?raw';
import { BLOCK, blockOf, defineKernel } from '../kernel';

/** Per block, the number of elements with bits(|τ|) = key. See shaders/count-equal.wgsl. */
export const countEqual = defineKernel({
  id: 'count-equal',
  wgsl: countEqualWgsl,
  params: { elements: 'u32', slot: 'u32', key: 'u32', out: 'u32' },
  buffers: { values: 'read', counts: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, key, out } = s.params;
    k.countEqual(s.at('values') + (slot + s.begin) * 4, s.n, key, s.at('counts') + (out + blockOf(s)) * 4);
  },
});
