import gramWgsl from '../../../shaders/gram.wgsl?raw';
import { dotBlock } from '../blocks';
import { hasSmall } from '../exact';
import { defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Number of pairs i ≤ j of `count` vectors. */
export function pairCount(count: number): number {
  return (count * (count + 1)) / 2;
}

/** Sums of all pairwise products over runs of elements. See shaders/gram.wgsl. */
export const gram = defineKernel({
  id: 'gram',
  wgsl: composeWgsl(gramWgsl),
  params: { elements: 'u32', slot: 'u32', stride: 'u32', count: 'u32', run: 'u32' },
  buffers: { values: 'read', sums: 'read_write' },
  unit: ({ run }) => run,
  wasm(k, { params, at, begin, n }) {
    const { slot, stride, count, run } = params;
    const sums = at('sums') + (begin / run) * pairCount(count) * 4;
    k.gram(at('values') + (slot + begin) * 4, stride * 4, count, n, run, sums, SCRATCH);
  },
  cpu({ params, f32, u32 }) {
    const { elements, slot, stride, count, run } = params;
    const values = f32('values');
    const words = u32('values');
    const sums = f32('sums');
    let p = 0;
    for (let begin = 0; begin < elements; begin += run) {
      const n = Math.min(run, elements - begin);
      const small = Array.from({ length: count }, (_, i) => hasSmall(words, slot + i * stride + begin, n));
      for (let i = 0; i < count; i++) {
        const a = slot + i * stride + begin;
        for (let j = i; j < count; j++) {
          sums[p++] = dotBlock(values, a, slot + j * stride + begin, n, small[i]! || small[j]!);
        }
      }
    }
  },
});
