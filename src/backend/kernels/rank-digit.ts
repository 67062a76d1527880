import rankDigitWgsl from '../../../shaders/rank-digit.wgsl?raw';
import { defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Shifts of the digits, lowest first: 8 × 4 bits cover the 31 bits of |τ|. */
export const RANK_SHIFTS = [0, 4, 8, 12, 16, 20, 24, 28] as const;

/** One digit of the ranks of |τ| inside rows. See shaders/rank-digit.wgsl. */
export const rankDigit = defineKernel({
  id: 'rank-digit',
  wgsl: composeWgsl(rankDigitWgsl),
  params: { elements: 'u32', slot: 'u32', cols: 'u32', shift: 'u32', first: 'u32', last: 'u32' },
  buffers: { values: 'read', order_in: 'read', order_out: 'read_write' },
  unit: ({ cols }) => cols,
  wasm(k, { params, at, begin, n }) {
    const { slot, cols, shift, first, last } = params;
    const [from, to] = [at('order_in') + begin * 4, at('order_out') + begin * 4];
    k.rankDigit(at('values') + (slot + begin) * 4, n, cols, shift, first, last, from, to, SCRATCH);
  },
  cpu({ params, u32 }) {
    const { elements, slot, cols, shift, first, last } = params;
    const values = u32('values');
    const orderIn = u32('order_in');
    const orderOut = u32('order_out');
    const places = new Uint32Array(16);
    for (let row = 0; row < elements; row += cols) {
      const indexAt = (p: number) => (first === 1 ? cols - 1 - p : orderIn[row + p]!);
      const digitOf = (index: number) => ((values[slot + row + index]! & 0x7fffffff) >>> shift) & 15;
      places.fill(0);
      for (let index = 0; index < cols; index++) places[digitOf(index)]!++;
      let next = 0;
      for (let digit = 0; digit < 16; digit++) {
        const n = places[digit]!;
        places[digit] = next;
        next += n;
      }
      for (let p = 0; p < cols; p++) {
        const index = indexAt(p);
        const place = places[digitOf(index)]!++;
        if (last === 1) orderOut[row + index] = place;
        else orderOut[row + place] = index;
      }
    }
  },
});
