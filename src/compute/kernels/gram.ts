import gramWgsl from '../../../shaders/gram.wgsl?raw';
import { dotBlock, eachBlock } from '../blocks';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Number of pairs i ≤ j of `count` vectors. */
export function pairCount(count: number): number {
  return (count * (count + 1)) / 2;
}

/** Block sums of all pairwise products. See shaders/gram.wgsl. */
export const gram = defineKernel({
  id: 'gram',
  wgsl: composeWgsl(gramWgsl),
  params: { elements: 'u32', slot: 'u32', stride: 'u32', count: 'u32' },
  buffers: { values: 'read', sums: 'read_write' },
  cpu({ params, f32 }) {
    const { elements, slot, stride, count } = params;
    const values = f32('values');
    const sums = f32('sums');
    const pairs = pairCount(count);
    eachBlock(elements, (begin, end, block) => {
      let p = block * pairs;
      for (let i = 0; i < count; i++) {
        const a = slot + i * stride;
        for (let j = i; j < count; j++) {
          const b = slot + j * stride;
          sums[p++] = dotBlock(values, a + begin, b + begin, end - begin);
        }
      }
    });
  },
});
