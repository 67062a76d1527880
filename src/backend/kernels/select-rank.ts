import selectRankWgsl from '../../../shaders/select-rank.wgsl?raw';
import { addTo, BLOCK, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Dropout in place with a probability set by the rank in the row. See shaders/select-rank.wgsl. */
export const selectRank = defineKernel({
  id: 'select-rank',
  wgsl: composeWgsl(selectRankWgsl, 'philox'),
  params: { elements: 'u32', slot: 'u32', first: 'u32', cols: 'u32', key0: 'u32', key1: 'u32', out: 'u32' },
  buffers: { values: 'read_write', ranks: 'read', table: 'read', kept: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, first, cols, key0, key1, out } = s.params;
    const values = s.at('values') + (slot + s.begin) * 4;
    const ranks = s.at('ranks') + s.begin * 4;
    const counter = (first + s.begin) / 4;
    const kept = k.selectRank(values, s.n, counter, ranks, s.at('table'), cols, key0, key1, SCRATCH);
    addTo(s, 'kept', out, kept);
  },
});
