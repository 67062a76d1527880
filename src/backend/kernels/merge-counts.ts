import mergeCountsWgsl from '../../../shaders/merge-counts.wgsl?raw';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';
import { isTiny } from './combine';
import { dtypeBytes } from './decode';
import { pairCount } from './inner-products';

/** Words that {@link mergeCounts} adds to for `models` contributors: at the base, lost of each, shared by each pair. */
export function mergeCountWords(models: number): number {
  return 1 + models + pairCount(models);
}

/** Counts elements at the base, changes lost in the sign election, and changes shared by pairs. See shaders/merge-counts.wgsl. */
export const mergeCounts = defineKernel({
  id: 'merge-counts',
  wgsl: mergeCountsWgsl,
  libraries: ['half'],
  params: {
    elements: 'u32',
    stride: 'u32',
    models: 'u32',
    election: 'u32',
    zero_negative: 'u32',
    dtype: 'u32',
  },
  buffers: { values: 'read', coefficients: 'read', packed: 'read', counts: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { stride, models, election, zero_negative, dtype } = s.params;
    const table = s.at('coefficients') / 4;
    const extreme = s.floats.subarray(table, table + 2 * models).some(isTiny);
    k.mergeCounts(
      s.at('values') + s.begin * 4,
      stride * 4,
      models,
      s.n,
      table * 4,
      election,
      zero_negative,
      extreme ? 1 : 0,
      s.at('packed') + s.begin * dtypeBytes(dtype),
      dtype,
      s.at('counts'),
      SCRATCH,
    );
  },
});
