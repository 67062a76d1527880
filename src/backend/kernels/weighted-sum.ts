import weightedSumWgsl from '../../../shaders/weighted-sum.wgsl?raw';
import { exact } from '../exact';
import { BLOCK, defineKernel, SCRATCH } from '../kernel';
import { composeWgsl } from '../wgsl';
import { changeSquares, packBlocks, packWords } from './encode';

/**
 * b·a + Σ c_i · (v_i − k·a) with coefficients per group of elements, packed into the output dtype; block sums of its
 * squared change to slot 0; adds the number of non-finite results to status[status]. See shaders/weighted-sum.wgsl.
 */
export const weightedSum = defineKernel({
  id: 'weighted-sum',
  wgsl: composeWgsl(weightedSumWgsl, 'half', 'exact4', 'pack'),
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
    packBlocks(k, s, (at, n, merged) => {
      const values = s.at('values') + (slot + at) * 4;
      for (let e = 0, size = 0; e < n; e += size) {
        const run = Math.floor((at + e) / per);
        size = Math.min(n - e, (run + 1) * per - (at + e));
        const table = s.at('coefficients') + (run % groups) * (count + 2) * 4;
        k.weightedSum(values + e * 4, stride * 4, count, anchor, table, merged + e * 4, size);
      }
      k.changeSquares(s.at('values') + at * 4, merged, n, s.at('sums') + (at / BLOCK) * 4, SCRATCH);
    });
  },
  cpu({ params, f32, u32 }) {
    const { elements, slot, stride, count, anchor, per, groups } = params;
    const values = f32('values');
    const coefficients = f32('coefficients');
    const at = slot + anchor * stride;
    // −0 and NaN pass through integer views as they are
    const bits = u32('values');
    const out = new Float32Array(elements);
    const outBits = new Uint32Array(out.buffer);
    for (let begin = 0, run = 0; begin < elements; begin += per, run++) {
      const table = (run % groups) * (count + 2);
      const b = coefficients[table]!;
      const affine = coefficients[table + 1]! === 1;
      const others: number[] = [];
      for (let i = 0; i < count; i++) if (i !== anchor && coefficients[table + 2 + i] !== 0) others.push(i);
      const end = Math.min(begin + per, elements);
      if (b === 0) outBits.fill(0, begin, end);
      else if (b === 1) outBits.set(bits.subarray(at + begin, at + end), begin);
      else for (let e = begin; e < end; e++) out[e] = exact(values[at + e]! * b);
      if (others.length === 0) continue;
      for (let e = begin; e < end; e++) {
        let delta = 0;
        for (let o = 0; o < others.length; o++) {
          const i = others[o]!;
          const v = values[slot + i * stride + e]!;
          const x = affine ? exact(v - values[at + e]!) : v;
          delta = exact(delta + exact(x * coefficients[table + 2 + i]!));
        }
        if (delta !== 0) out[e] = exact(out[e]! + delta);
      }
    }
    changeSquares(values, out, elements, f32('sums'));
    u32('status')[params.status]! += packWords(outBits, elements, params.dtype, u32('packed'));
  },
});
