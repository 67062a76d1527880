import differenceWgsl from '../../../shaders/difference.wgsl?raw';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';

/** Words of one segment: Σ|Δ|, ΣΔ², Σa², Σb², Σab, max|Δ|, then how many elements have changed by more than the threshold, have flipped their sign, and differ in any bit. */
export const DIFFERENCE_WORDS = 9;

/** Segments of a row of `cols` elements. */
export function rowSegments(cols: number): number {
  return Math.ceil(cols / BLOCK);
}

/** Δ = b − a and what there is to know of it, segment by segment. See shaders/difference.wgsl. */
export const difference = defineKernel({
  id: 'difference',
  wgsl: differenceWgsl,
  params: { rows: 'u32', cols: 'u32', a: 'u32', b: 'u32', out: 'u32', threshold: 'f32' },
  buffers: { values: 'read', delta: 'read_write', sums: 'read_write' },
  wasm(k, { params, at }) {
    const { rows, cols, a, b, out, threshold } = params;
    const values = at('values');
    const delta = at('delta') + out * 4;
    k.difference(values + a * 4, values + b * 4, rows, cols, threshold, delta, at('sums'), SCRATCH);
  },
});
