import selectRandomWgsl from '../../../shaders/select-random.wgsl?raw';
import { addTo, BLOCK, defineKernel, SCRATCH } from '../kernel';

/** DARE dropout in place from a counter-based generator. See shaders/select-random.wgsl. */
export const selectRandom = defineKernel({
  id: 'select-random',
  wgsl: selectRandomWgsl,
  libraries: ['philox'],
  params: { elements: 'u32', slot: 'u32', first: 'u32', below: 'u32', key0: 'u32', key1: 'u32', out: 'u32' },
  buffers: { values: 'read_write', kept: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, first, below, key0, key1, out } = s.params;
    const values = s.at('values') + (slot + s.begin) * 4;
    addTo(s, 'kept', out, k.selectRandom(values, s.n, (first + s.begin) / 4, below, key0, key1, SCRATCH));
  },
});
