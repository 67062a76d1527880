import weightedSumWgsl from '../../../shaders/weighted-sum.wgsl?raw';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';
import { isTiny } from './combine';
import { packBlocks } from './encode';

/**
 * b·a + Σ c_i · (v_i − k·a) with coefficients per group of elements, packed into the output dtype; block sums of its
 * squared change to slot 0; adds the number of non-finite results to status[status]. See shaders/weighted-sum.wgsl.
 */
export const weightedSum = defineKernel({
  id: 'weighted-sum',
  wgsl: weightedSumWgsl,
  libraries: ['half', 'exact4', 'pack'],
  params: {
    elements: 'u32',
    slot: 'u32',
    stride: 'u32',
    count: 'u32',
    anchor: 'u32',
    per: 'u32',
    groups: 'u32',
    dtype: 'u32',
    status: 'u32',
  },
  buffers: {
    values: 'read',
    coefficients: 'read',
    packed: 'read_write',
    sums: 'read_write',
    status: 'read_write',
  },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, stride, count, anchor, per, groups } = s.params;
    const begin = s.at('coefficients') / 4;
    s.memo.small ??= s.floats.subarray(begin, begin + groups * (count + 2)).some(isTiny) ? 1 : 0;
    const extreme = s.memo.small;
    packBlocks(k, s, (at, n, merged) => {
      const values = s.at('values') + (slot + at) * 4;
      for (let e = 0, size = 0; e < n; e += size) {
        const run = Math.floor((at + e) / per);
        size = Math.min(n - e, (run + 1) * per - (at + e));
        const table = s.at('coefficients') + (run % groups) * (count + 2) * 4;
        k.weightedSum(values + e * 4, stride * 4, count, anchor, table, extreme, merged + e * 4, size);
      }
      k.changeSquares(s.at('values') + at * 4, merged, n, s.at('sums') + (at / BLOCK) * 4, SCRATCH);
    });
  },
});
