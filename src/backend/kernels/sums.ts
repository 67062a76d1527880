import addScaledWgsl from '../../../shaders/sums/add-scaled.wgsl?raw';
import lowRankWgsl from '../../../shaders/sums/low-rank.wgsl?raw';
import mixColumnsWgsl from '../../../shaders/sums/mix-columns.wgsl?raw';
import moveValuesWgsl from '../../../shaders/sums/move-values.wgsl?raw';
import storedSumWgsl from '../../../shaders/sums/stored-sum.wgsl?raw';
import subtractWgsl from '../../../shaders/sums/subtract.wgsl?raw';
import weightedSumWgsl from '../../../shaders/sums/weighted-sum.wgsl?raw';
import { BLOCK, blockOf, defineKernel, SCRATCH } from '../kernel';
import { isTiny, SOME_TINY, sizesOf } from './combine';
import { dtypeBytes, listSources, MERGED, PACKED, packBlocks, SLOTS } from './encoding';
import { pairCount } from './products';

/**
 * b·a + Σ c_i · (v_i − k·a) with coefficients per group of elements, packed into the output dtype; block sums of its
 * squared change to slot 0; adds the number of non-finite results to status[status]. See shaders/sums/weighted-sum.wgsl.
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
    values: 'vec4f',
    coefficients: 'u32',
    packed: 'rw u32',
    sums: 'rw f32',
    status: 'rw atomic<u32>',
  },
  unit: () => PACKED,
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

/** Stored tensors that one pass can take: the sums of more have no room in a workgroup. */
export const MOST_STORED = 4;

/** Words of a block's sums: the products of base and contributors, the squared change, the elements left at the base. */
export function storedSumWords(models: number): number {
  return pairCount(models + 1) + 2;
}

const define = (models: number, hasBase: boolean) =>
  defineKernel({
    id: `stored-sum-${models}${hasBase ? '-base' : ''}`,
    wgsl: `const VECTORS = ${models + 1}u;\nconst FIRST = ${hasBase ? 0 : 1}u;\n${storedSumWgsl}`,
    libraries: ['half', 'exact4', 'pack', 'stored'],
    params: { elements: 'u32', anchor: 'u32', dtype: 'u32', status: 'u32' },
    buffers: {
      raw: 'u32',
      inputs: 'vec2u',
      coefficients: 'u32',
      packed: 'rw u32',
      sums: 'rw u32',
      status: 'rw atomic<u32>',
    },
    unit: () => PACKED,
    wasm(k, s) {
      const { anchor, dtype, status } = s.params;
      const begin = s.at('coefficients') / 4;
      s.memo.small ??= sizesOf(s.floats.subarray(begin, begin + models + 2));
      k.storedSum(
        listSources(s, models + 1, { first: hasBase ? 0 : 1 }),
        models,
        anchor,
        begin * 4,
        s.memo.small & SOME_TINY,
        s.memo.small === 0 ? 1 : 0,
        s.at('packed') + s.begin * dtypeBytes(dtype),
        dtype,
        s.n,
        s.at('sums') + blockOf(s) * storedSumWords(models) * 4,
        s.at('status'),
        s.at('status') + status * 4,
        SLOTS,
        SCRATCH,
        MERGED,
      );
    },
  });

const upTo = (models: number, hasBase: boolean) =>
  Array.from({ length: models }, (_, i) => define(i + 1, hasBase));

/**
 * Weighted sums of stored weights with all they are measured by, in one pass, by contributors less one. See
 * shaders/sums/stored-sum.wgsl.
 */
export const storedSums = { base: upTo(MOST_STORED - 1, true), alone: upTo(MOST_STORED, false) };

/** Δ = scale · L·R for a tile of flat elements, stored or added. See shaders/sums/low-rank.wgsl. */
export const lowRank = defineKernel({
  id: 'low-rank',
  wgsl: lowRankWgsl,
  params: { elements: 'u32', first: 'u32', cols: 'u32', rank: 'u32', slot: 'u32', add: 'u32', scale: 'f32' },
  buffers: { left: 'f32', right: 'f32', values: 'rw f32' },
  unit: () => BLOCK,
  wasm(k, { params, at, size, memo, begin, n }) {
    const { first, cols, rank, slot, add, scale } = params;
    const [left, right] = [at('left'), at('right')];
    memo.small ??= k.hasSmall(left, size('left') / 4) || k.hasSmall(right, size('right') / 4);
    const out = at('values') + (slot + begin) * 4;
    k.lowRank(left, right, cols, rank, out, first + begin, n, scale, add, memo.small, SCRATCH);
  },
});

/** τ = W − W₀ in place, slot 0 being W₀. See shaders/sums/subtract.wgsl. */
export const subtract = defineKernel({
  id: 'subtract',
  wgsl: subtractWgsl,
  params: { elements: 'u32', slot: 'u32' },
  buffers: { values: 'rw u32' },
  unit: () => BLOCK,
  wasm(k, { params, at, begin, n }) {
    k.subtract(at('values') + (params.slot + begin) * 4, at('values') + begin * 4, n);
  },
});

/** y += scale · x. See shaders/sums/add-scaled.wgsl. */
export const addScaled = defineKernel({
  id: 'add-scaled',
  wgsl: addScaledWgsl,
  params: { elements: 'u32', scale: 'f32' },
  buffers: { x: 'f32', y: 'rw f32' },
  span: () => 256,
  wasm(k, { params, at }) {
    k.addScaled(at('x'), at('y'), params.elements, params.scale);
  },
});

/** Moves words from one buffer to another. See shaders/sums/move-values.wgsl. */
export const moveValues = defineKernel({
  id: 'move-values',
  wgsl: moveValuesWgsl,
  params: { elements: 'u32', from_word: 'u32', to_word: 'u32' },
  buffers: { x: 'u32', y: 'rw u32' },
  cpu({ params, u32 }) {
    const { elements, from_word, to_word } = params;
    u32('y').set(u32('x').subarray(from_word, from_word + elements), to_word);
  },
});

/** A share of a deviation, its size by column. See shaders/sums/mix-columns.wgsl. */
export const mixColumns = defineKernel({
  id: 'mix-columns',
  wgsl: mixColumnsWgsl,
  params: { elements: 'u32', cols: 'u32' },
  buffers: { x: 'f32', reference: 'f32', factor: 'f32', y: 'rw f32' },
  span: () => 1024,
  cpu({ params, f32 }) {
    const { elements, cols } = params;
    const x = f32('x');
    const reference = f32('reference');
    const factor = f32('factor');
    const y = f32('y');
    for (let e = 0; e < elements; e++) y[e]! += factor[e % cols]! * (x[e]! - reference[e]!);
  },
});
