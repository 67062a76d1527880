import rankDigitWgsl from '../../../shaders/rank-digit.wgsl?raw';
import { defineKernel, SCRATCH } from '../kernel';

/** Shifts of the digits, lowest first: 8 × 4 bits cover the 31 bits of |τ|. */
export const RANK_SHIFTS = [0, 4, 8, 12, 16, 20, 24, 28] as const;

/**
 * One digit of the ranks of |τ| inside rows. See shaders/rank-digit.wgsl. The processor's form finds whole ranks at the last
 * digit, with `order_in` as its scratch, and does nothing before, nor where it need not tell them (`ranked` 0): then
 * `selectRank` finds out what it needs.
 */
export const rankDigit = defineKernel({
  id: 'rank-digit',
  wgsl: rankDigitWgsl,
  params: {
    elements: 'u32',
    slot: 'u32',
    cols: 'u32',
    shift: 'u32',
    first: 'u32',
    last: 'u32',
    ranked: 'u32',
  },
  buffers: { values: 'read', order_in: 'read', order_out: 'read_write' },
  unit: ({ cols }) => cols,
  wasm(k, { params: { slot, cols, last, ranked }, at, begin, n }) {
    if (!last || !ranked) return;
    const [spare, ranks] = [at('order_in') + begin * 4, at('order_out') + begin * 4];
    k.rankRows(at('values') + (slot + begin) * 4, n, cols, spare, ranks, SCRATCH);
  },
});
