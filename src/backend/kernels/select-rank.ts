import selectRankWgsl from '../../../shaders/select-rank.wgsl?raw';
import { exact } from '../exact';
import { addTo, BLOCK, defineKernel, SCRATCH } from '../kernel';
import { philox } from '../philox';
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
  cpu({ params, f32, u32 }) {
    const { elements, slot, first, cols, key0, key1, out } = params;
    const values = f32('values');
    const ranks = u32('ranks');
    const below = u32('table');
    const scale = f32('table');
    const words = new Uint32Array(4);
    let n = 0;
    for (let e = 0; e < elements; e += 4) {
      philox((first + e) / 4, 0, key0, key1, words);
      for (let i = 0; i < 4 && e + i < elements; i++) {
        const at = slot + e + i;
        const rank = ranks[e + i]!;
        if (words[i]! < below[rank]!) {
          n++;
          values[at] = exact(values[at]! * scale[cols + rank]!);
        } else values[at] = 0;
      }
    }
    u32('kept')[out]! += n;
  },
});
