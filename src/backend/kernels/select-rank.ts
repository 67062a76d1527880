import selectRankWgsl from '../../../shaders/select-rank.wgsl?raw';
import { addTo, BLOCK, defineKernel, SCRATCH } from '../kernel';

/** Most columns for which a selection can do without ranks (`ranked` 0). */
export const MOST_UNRANKED = 65_535;

/**
 * Dropout in place with a probability set by the rank in the row. See shaders/select-rank.wgsl. With `ranked` 0 the
 * processor's form takes no ranks, and their buffer as scratch; then all scales are 1 and the probabilities grow with the rank.
 */
export const selectRank = defineKernel({
  id: 'select-rank',
  wgsl: selectRankWgsl,
  libraries: ['philox'],
  params: {
    elements: 'u32',
    slot: 'u32',
    first: 'u32',
    cols: 'u32',
    key0: 'u32',
    key1: 'u32',
    out: 'u32',
    ranked: 'u32',
  },
  buffers: { values: 'read_write', ranks: 'read', table: 'read', kept: 'read_write' },
  unit: ({ cols, ranked }) => (ranked ? BLOCK : cols),
  wasm(k, s) {
    const { slot, first, cols, key0, key1, out, ranked } = s.params;
    const values = s.at('values') + (slot + s.begin) * 4;
    const ranks = s.at('ranks') + s.begin * 4;
    const table = s.at('table');
    const begin = first + s.begin;
    const kept = ranked
      ? k.selectRank(values, s.n, begin / 4, ranks, table, cols, key0, key1, SCRATCH)
      : k.selectRows(values, s.n, begin, cols, ranks, table, key0, key1, SCRATCH);
    addTo(s, 'kept', out, kept);
  },
});
