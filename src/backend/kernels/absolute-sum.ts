import absoluteSumWgsl from '../../../shaders/absolute-sum.wgsl?raw';
import { BLOCK, blockOf, defineKernel, SCRATCH } from '../kernel';

/** Block sums of |v|. See shaders/absolute-sum.wgsl. */
export const absoluteSum = defineKernel({
  id: 'absolute-sum',
  wgsl: absoluteSumWgsl,
  params: { elements: 'u32', slot: 'u32', out: 'u32' },
  buffers: { values: 'read', sums: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, out } = s.params;
    k.absoluteSum(s.at('values') + (slot + s.begin) * 4, s.n, s.at('sums') + (out + blockOf(s)) * 4, SCRATCH);
  },
});
