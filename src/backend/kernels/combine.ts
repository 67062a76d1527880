import combineWgsl from '../../../shaders/combine/combine.wgsl?raw';
import packKeptWgsl from '../../../shaders/combine/pack-kept.wgsl?raw';
import { BLOCK, blockOf, defineKernel, SCRATCH } from '../kernel';
import { dtypeBytes, listSources, MERGED, PACKED, packBlocks, SLOTS } from './encoding';
import { pairCount } from './products';

/** Ballots of the sign election, by number; as in shaders/combine/combine.wgsl. `kept`: no election, all that is kept agrees. */
export const ELECTION = { none: 0, weighted: 1, values: 2, signs: 3, kept: 4 } as const;
/** Words of statistics per block: conflicts, Σ delta², ballot sums above and below zero. */
export const COMBINE_STATS = 4;

/** More models that elect have no table of reciprocals. */
export const MOST_IN_TABLE = 16;

/** Words of the coefficients: weights, scales, then the terms of the divisors. */
export function coefficientWords(models: number, elects: boolean): number {
  const divisors = !elects ? 1 : models <= MOST_IN_TABLE ? 2 ** models : models + 1;
  return 2 * models + divisors;
}

/** Whether products with this coefficient may be subnormal. */
export function isTiny(c: number): boolean {
  return c !== 0 && Math.abs(c) < 2 ** -10;
}

/** Bits of `sizesOf`. */
export const SOME_TINY = 1;
const SOME_LARGE = 2;

/** Whether some of the coefficients are small (`isTiny`), as bit 0, and whether some are above 2^10, as bit 1. */
export function sizesOf(coefficients: Float32Array): number {
  const isLarge = (c: number) => !(Math.abs(c) <= 2 ** 10);
  return (coefficients.some(isTiny) ? SOME_TINY : 0) | (coefficients.some(isLarge) ? SOME_LARGE : 0);
}

/**
 * Weighted (elected) sum of task vectors, divided, scaled, added to the base and packed into the output dtype; adds the
 * number of non-finite results to status[status]. See shaders/combine/combine.wgsl.
 */
export const combine = defineKernel({
  id: 'combine',
  wgsl: combineWgsl,
  libraries: ['half', 'exact4', 'pack'],
  params: {
    elements: 'u32',
    stride: 'u32',
    models: 'u32',
    election: 'u32',
    zero_negative: 'u32',
    dtype: 'u32',
    status: 'u32',
    lambda: 'f32',
  },
  buffers: {
    values: 'vec4f',
    coefficients: 'f32',
    packed: 'rw u32',
    stats: 'rw u32',
    status: 'rw atomic<u32>',
  },
  unit: () => PACKED,
  wasm(k, s) {
    const { stride, models, election, zero_negative, lambda } = s.params;
    const table = s.at('coefficients') / 4;
    const words = coefficientWords(models, election !== 0);
    const extreme = isTiny(lambda) || s.floats.subarray(table, table + words).some(isTiny);
    packBlocks(k, s, (at, n, merged) =>
      k.combine(
        s.at('values') + at * 4,
        stride * 4,
        models,
        n,
        table * 4,
        election,
        zero_negative,
        lambda,
        extreme ? 1 : 0,
        merged,
        s.at('stats') + (at / BLOCK) * COMBINE_STATS * 4,
        SCRATCH,
      ),
    );
  },
});

/** How {@link mergeChanges} selects: nothing is dropped, by thresholds, or by masks. */
export const SELECTION = { all: 0, cuts: 1, masks: 2 } as const;

/**
 * Merges task vectors as they are stored, on the processor alone, as `decode`, `select-threshold` or `select-mask`,
 * `inner-products`, `combine` and `merge-counts` do it one after another. `cuts`: the thresholds of every contributor; masks as
 * in `measure-changes`. Ballot sums are given for some blocks only.
 */
export const mergeChanges = defineKernel({
  id: 'merge-changes',
  wgsl: '',
  params: {
    elements: 'u32',
    stride: 'u32',
    models: 'u32',
    first_block: 'u32',
    selection: 'u32',
    mask: 'u32',
    mask_pitch: 'u32',
    election: 'u32',
    zero_negative: 'u32',
    dtype: 'u32',
    status: 'u32',
    lambda: 'f32',
  },
  buffers: {
    raw: 'u32',
    inputs: 'u32',
    values: 'u32',
    cuts: 'u32',
    masks: 'u32',
    coefficients: 'f32',
    packed: 'rw u32',
    sums: 'rw f32',
    stats: 'rw u32',
    counts: 'rw u32',
    kept: 'rw u32',
    status: 'rw u32',
  },
  unit: () => PACKED,
  wasm(k, s) {
    const { stride, models, first_block, selection, mask, mask_pitch, election, dtype, status } = s.params;
    const { lambda } = s.params;
    const table = s.at('coefficients') / 4;
    const words = coefficientWords(models, election !== 0);
    s.memo.small ??= sizesOf(Float32Array.of(lambda, ...s.floats.subarray(table, table + words)));
    k.mergeChanges(
      listSources(s, models + 1, { values: s.at('values'), stride }),
      models,
      s.n,
      first_block + blockOf(s),
      selection === SELECTION.cuts ? s.at('cuts') : 0,
      selection === SELECTION.masks ? s.at('masks') + (mask + s.begin / 32) * 4 : 0,
      mask_pitch * 4,
      table * 4,
      election,
      s.params.zero_negative,
      lambda,
      s.memo.small & SOME_TINY,
      s.memo.small === 0 ? 1 : 0,
      s.at('packed') + s.begin * dtypeBytes(dtype),
      dtype,
      s.at('sums') + blockOf(s) * pairCount(models + 1) * 4,
      s.at('stats') + blockOf(s) * COMBINE_STATS * 4,
      s.at('counts'),
      s.at('kept'),
      s.at('status'),
      s.at('status') + status * 4,
      SLOTS,
      SCRATCH,
      MERGED,
    );
  },
});

/** One bit per element: whether it is not 0. See shaders/combine/pack-kept.wgsl. */
export const packKept = defineKernel({
  id: 'pack-kept',
  wgsl: packKeptWgsl,
  params: { elements: 'u32', slot: 'u32', first: 'u32' },
  buffers: { values: 'u32', mask: 'rw u32' },
  unit: () => BLOCK,
  wasm(k, { params: { slot, first }, at, begin, n }) {
    k.packKept(at('values') + (slot + begin) * 4, n, at('mask') + (first + begin / 32) * 4);
  },
});
