import differenceWgsl from '../../../shaders/difference.wgsl?raw';
import { absoluteBlock, dotBlock } from '../blocks';
import { exact, hasSmall } from '../exact';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Words of one segment: Σ|Δ|, ΣΔ², Σa², Σb², Σab, max|Δ|, then counts of changed, flipped and different elements. */
export const DIFFERENCE_WORDS = 9;

/** Segments of a row of `cols` elements. */
export function rowSegments(cols: number): number {
  return Math.ceil(cols / BLOCK);
}

/** Δ = b − a and what there is to know of it, segment by segment. See shaders/difference.wgsl. */
export const difference = defineKernel({
  id: 'difference',
  wgsl: composeWgsl(differenceWgsl),
  params: { rows: 'u32', cols: 'u32', a: 'u32', b: 'u32', out: 'u32', threshold: 'f32' },
  buffers: { values: 'read', delta: 'read_write', sums: 'read_write' },
  wasm(k, { params, at }) {
    const { rows, cols, a, b, out, threshold } = params;
    const values = at('values');
    const delta = at('delta') + out * 4;
    k.difference(values + a * 4, values + b * 4, rows, cols, threshold, delta, at('sums'), SCRATCH);
  },
  cpu({ params, f32, u32 }) {
    const { rows, cols, a, b, out } = params;
    const threshold = Math.fround(params.threshold);
    const values = f32('values');
    const words = u32('values');
    const delta = f32('delta');
    const deltaWords = u32('delta');
    const sums = f32('sums');
    const counts = u32('sums');
    let at = 0;
    for (let row = 0; row < rows; row++) {
      for (let first = 0; first < cols; first += BLOCK) {
        const n = Math.min(BLOCK, cols - first);
        const begin = row * cols + first;
        const [p, q, d] = [a + begin, b + begin, out + begin];
        let largest = 0;
        let changed = 0;
        let flipped = 0;
        let different = 0;
        for (let e = 0; e < n; e++) {
          const change = exact(values[q + e]! - values[p + e]!);
          delta[d + e] = change;
          const size = Math.abs(change);
          if (size > largest) largest = size;
          if (size > threshold) changed++;
          const x = words[p + e]!;
          const y = words[q + e]!;
          if (x === y) continue;
          different++;
          if ((x ^ y) < 0 && (x & 0x7fffffff) !== 0 && (y & 0x7fffffff) !== 0) flipped++;
        }
        const small = [hasSmall(words, p, n), hasSmall(words, q, n)] as const;
        sums[at] = absoluteBlock(delta, d, n);
        sums[at + 1] = dotBlock(delta, d, d, n, hasSmall(deltaWords, d, n));
        sums[at + 2] = dotBlock(values, p, p, n, small[0]);
        sums[at + 3] = dotBlock(values, q, q, n, small[1]);
        sums[at + 4] = dotBlock(values, p, q, n, small[0] || small[1]);
        sums[at + 5] = largest;
        counts[at + 6] = changed;
        counts[at + 7] = flipped;
        counts[at + 8] = different;
        at += DIFFERENCE_WORDS;
      }
    }
  },
});
