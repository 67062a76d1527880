import lowRankWgsl from '../../../shaders/low-rank.wgsl?raw';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';

/** Δ = scale · L·R for a tile of flat elements, stored or added. See shaders/low-rank.wgsl. */
export const lowRank = defineKernel({
  id: 'low-rank',
  wgsl: lowRankWgsl,
  params: { elements: 'u32', first: 'u32', cols: 'u32', rank: 'u32', slot: 'u32', add: 'u32', scale: 'f32' },
  buffers: { left: 'read', right: 'read', values: 'read_write' },
  unit: () => BLOCK,
  wasm(k, { params, at, size, memo, begin, n }) {
    const { first, cols, rank, slot, add, scale } = params;
    const [left, right] = [at('left'), at('right')];
    memo.small ??= k.hasSmall(left, size('left') / 4) || k.hasSmall(right, size('right') / 4);
    const out = at('values') + (slot + begin) * 4;
    k.lowRank(left, right, cols, rank, out, first + begin, n, scale, add, memo.small, SCRATCH);
  },
});
