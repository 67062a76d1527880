import innerProductsWgsl from '../../../shaders/inner-products.wgsl?raw';
import { defineKernel, SCRATCH } from '../kernel';

/** Number of pairs i ≤ j of `count` vectors. */
export function pairCount(count: number): number {
  return (count * (count + 1)) / 2;
}

/** Sums of all pairwise products over runs of elements. See shaders/inner-products.wgsl. */
export const innerProducts = defineKernel({
  id: 'inner-products',
  wgsl: innerProductsWgsl,
  params: { elements: 'u32', slot: 'u32', stride: 'u32', count: 'u32', run: 'u32' },
  buffers: { values: 'read', sums: 'read_write' },
  unit: ({ run }) => run,
  wasm(k, { params, at, begin, n }) {
    const { slot, stride, count, run } = params;
    const sums = at('sums') + (begin / run) * pairCount(count) * 4;
    k.innerProducts(at('values') + (slot + begin) * 4, stride * 4, count, n, run, sums, SCRATCH);
  },
});
