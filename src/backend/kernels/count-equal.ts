import countEqualWgsl from '../../../shaders/count-equal.wgsl?raw';
import { eachBlock } from '../blocks';
import { BLOCK, blockOf, defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Per block, the number of elements with bits(|τ|) = key. See shaders/count-equal.wgsl. */
export const countEqual = defineKernel({
  id: 'count-equal',
  wgsl: composeWgsl(countEqualWgsl),
  params: { elements: 'u32', slot: 'u32', key: 'u32', out: 'u32' },
  buffers: { values: 'read', counts: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, key, out } = s.params;
    k.countEqual(s.at('values') + (slot + s.begin) * 4, s.n, key, s.at('counts') + (out + blockOf(s)) * 4);
  },
  cpu({ params, u32 }) {
    const { elements, slot, key, out } = params;
    const values = u32('values');
    const counts = u32('counts');
    eachBlock(elements, (begin, end, block) => {
      let n = 0;
      for (let e = begin; e < end; e++) if ((values[slot + e]! & 0x7fffffff) === key) n++;
      counts[out + block] = n;
    });
  },
});
