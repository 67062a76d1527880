import combineWgsl from '../../../shaders/combine.wgsl?raw';
import { dotBlock, eachBlock } from '../blocks';
import { BLOCK, defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Weighted (elected) sum of task vectors, divided, scaled and added to the base. See shaders/combine.wgsl. */
export const combine = defineKernel({
  id: 'combine',
  wgsl: composeWgsl(combineWgsl),
  params: { elements: 'u32', stride: 'u32', models: 'u32', consensus: 'u32', lambda: 'f32' },
  buffers: { values: 'read', coefficients: 'read', out: 'read_write', stats: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { elements, stride, models: n, consensus } = params;
    const lambda = Math.fround(params.lambda);
    const values = f32('values');
    const bits = u32('values');
    const coefficients = f32('coefficients');
    const out = f32('out');
    const outBits = u32('out');
    const counts = u32('stats');
    const squares = f32('stats');
    // one block of changes at a time, model after model: simple loops over arrays that stay in cache
    const changes = new Float32Array(n * BLOCK);
    const total = new Float32Array(BLOCK);
    const positive = new Uint32Array(BLOCK);
    const negative = new Uint32Array(BLOCK);
    const delta = new Float32Array(BLOCK);
    eachBlock(elements, (begin, end, block) => {
      const size = end - begin;
      total.fill(0);
      positive.fill(0);
      negative.fill(0);
      for (let i = 0; i < n; i++) {
        const scale = coefficients[n + i]!;
        const weight = coefficients[i]!;
        const at = (i + 1) * stride + begin;
        const to = i * BLOCK;
        const bit = 1 << i;
        for (let e = 0; e < size; e++) {
          const d = Math.fround(Math.fround(values[at + e]! * scale) * weight);
          changes[to + e] = d;
          total[e] = total[e]! + d;
          if (d > 0) positive[e]! |= bit;
          else if (d < 0) negative[e]! |= bit;
        }
      }
      let conflicts = 0;
      for (let e = 0; e < size; e++) if (positive[e] !== 0 && negative[e] !== 0) conflicts++;
      const reciprocals = 2 * n;
      for (let e = 0; e < size; e++) {
        let mixed = total[e]!;
        let agreeing = 0;
        if (consensus === 1) {
          agreeing = mixed >= 0 ? positive[e]! : negative[e]!;
          mixed = 0;
          for (let i = 0; i < n; i++) {
            if (((agreeing >> i) & 1) === 1) mixed = Math.fround(mixed + changes[i * BLOCK + e]!);
          }
        }
        delta[e] = Math.fround(mixed * coefficients[reciprocals + agreeing]!) * lambda;
      }
      for (let e = 0; e < size; e++) {
        if (delta[e] === 0) outBits[begin + e] = bits[begin + e]!;
        else out[begin + e] = values[begin + e]! + delta[e]!;
      }
      counts[2 * block] = conflicts;
      squares[2 * block + 1] = dotBlock(delta, 0, 0, size);
    });
  },
});
