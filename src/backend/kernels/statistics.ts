import absoluteSumWgsl from '../../../shaders/statistics/absolute-sum.wgsl?raw';
import countNonFiniteWgsl from '../../../shaders/statistics/count-non-finite.wgsl?raw';
import differenceWgsl from '../../../shaders/statistics/difference.wgsl?raw';
import mergeCountsWgsl from '../../../shaders/statistics/merge-counts.wgsl?raw';
import varianceWgsl from '../../../shaders/statistics/variance.wgsl?raw';
import { exact } from '../exact';
import { BLOCK, blockOf, defineKernel, SCRATCH } from '../kernel';
import { isTiny } from './combine';
import { DTYPE_CODE, dtypeBytes, listSources, SLOTS } from './encoding';
import { pairCount } from './products';

/** Block sums of |v|. See shaders/statistics/absolute-sum.wgsl. */
export const absoluteSum = defineKernel({
  id: 'absolute-sum',
  wgsl: absoluteSumWgsl,
  params: { elements: 'u32', slot: 'u32', out: 'u32' },
  buffers: { values: 'f32', sums: 'rw f32' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, out } = s.params;
    k.absoluteSum(s.at('values') + (slot + s.begin) * 4, s.n, s.at('sums') + (out + blockOf(s)) * 4, SCRATCH);
  },
});

/** Adds the number of NaN and infinite elements to counts[slot]. See shaders/statistics/count-non-finite.wgsl. */
export const countNonFinite = defineKernel({
  id: 'count-non-finite',
  wgsl: countNonFiniteWgsl,
  params: { elements: 'u32', slot: 'u32' },
  buffers: { x: 'u32', counts: 'rw atomic<u32>' },
  span: () => 1024,
  cpu({ params, u32 }) {
    const x = u32('x');
    let bad = 0;
    for (let e = 0; e < params.elements; e++) if ((x[e]! & 0x7f800000) === 0x7f800000) bad++;
    u32('counts')[params.slot]! += bad;
  },
});

/** n² times the population variance of the task vectors at every element. See shaders/statistics/variance.wgsl. */
export const variance = defineKernel({
  id: 'variance',
  wgsl: varianceWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { values: 'f32', score: 'rw f32' },
  cpu({ params, f32 }) {
    const { elements, stride, models } = params;
    const values = f32('values');
    const score = f32('score');
    for (let e = 0; e < elements; e++) {
      let sum = 0;
      for (let i = 1; i < models; i++) {
        for (let j = i + 1; j <= models; j++) {
          const d = exact(values[i * stride + e]! - values[j * stride + e]!);
          sum = exact(sum + exact(d * d));
        }
      }
      score[e] = sum;
    }
  },
});

/** Words of one segment: Σ|Δ|, ΣΔ², Σa², Σb², Σab, max|Δ|, then how many elements have changed by more than the threshold, have flipped their sign, and differ in any bit. */
export const DIFFERENCE_WORDS = 9;

/** Segments of a row of `cols` elements. */
export function rowSegments(cols: number): number {
  return Math.ceil(cols / BLOCK);
}

/** What there is to know of Δ = b − a, segment by segment; Δ itself where `keep` is 1. See shaders/statistics/difference.wgsl. */
export const difference = defineKernel({
  id: 'difference',
  wgsl: differenceWgsl,
  params: { rows: 'u32', cols: 'u32', a: 'u32', b: 'u32', keep: 'u32', out: 'u32', threshold: 'f32' },
  buffers: { values: 'u32', delta: 'rw f32', sums: 'rw u32' },
  work: ({ rows, cols }) => rows * cols,
  wasm(k, { params, at }) {
    const { rows, cols, a, b, keep, out, threshold } = params;
    const [one, other] = [at('values') + a * 4, at('values') + b * 4];
    const delta = keep ? at('delta') + out * 4 : 0;
    k.difference(one, F32, other, F32, rows, cols, threshold, delta, at('sums'), UNCOUNTED, SLOTS, SCRATCH);
  },
});

const F32 = DTYPE_CODE.F32;
/** Words of the scratch that take counts nobody asks for. */
const UNCOUNTED = SCRATCH + 2048;

/** The same of versions 1 and 2 of a tile as they are stored, on the processor alone; what is not finite is counted in `status`. */
export const differenceStored = defineKernel({
  id: 'difference-stored',
  wgsl: '',
  params: { rows: 'u32', cols: 'u32', keep: 'u32', out: 'u32', threshold: 'f32' },
  buffers: { raw: 'u32', inputs: 'u32', delta: 'rw f32', sums: 'rw u32', status: 'rw u32' },
  work: ({ rows, cols }) => rows * cols,
  wasm(k, s) {
    const { rows, cols, keep, out, threshold } = s.params;
    const list = listSources(s, 3, { first: 1 }) / 4;
    const [a, aType, , b, bType] = s.words.subarray(list + 3) as unknown as [
      number,
      number,
      number,
      number,
      number,
    ];
    const delta = keep ? s.at('delta') + out * 4 : 0;
    const [sums, status] = [s.at('sums'), s.at('status') + 4];
    k.difference(a, aType, b, bType, rows, cols, threshold, delta, sums, status, SLOTS, SCRATCH);
  },
});

/** Words that {@link mergeCounts} adds to for `models` contributors: at the base, lost of each, shared by each pair. */
export function mergeCountWords(models: number): number {
  return 1 + models + pairCount(models);
}

/** Counts elements at the base, changes lost in the sign election, and changes shared by pairs. See shaders/statistics/merge-counts.wgsl. */
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
  buffers: { values: 'u32', coefficients: 'f32', packed: 'u32', counts: 'rw atomic<u32>' },
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
