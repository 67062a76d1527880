import combineWgsl from '../../../shaders/combine.wgsl?raw';
import { eachBlock, sumLanes } from '../blocks';
import { defineKernel, LANES } from '../kernel';
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
    const changes = new Float32Array(n);
    const lanes = new Float32Array(LANES);
    eachBlock(elements, (begin, end, block) => {
      let conflicts = 0;
      lanes.fill(0);
      for (let e = begin; e < end; e++) {
        let total = 0;
        let positive = 0;
        let negative = 0;
        for (let i = 0; i < n; i++) {
          const scaled = Math.fround(values[(i + 1) * stride + e]! * coefficients[n + i]!);
          const d = Math.fround(scaled * coefficients[i]!);
          changes[i] = d;
          total = Math.fround(total + d);
          if (d > 0) positive |= 1 << i;
          if (d < 0) negative |= 1 << i;
        }
        if (positive !== 0 && negative !== 0) conflicts++;
        let mixed = total;
        let agreeing = 0;
        if (consensus === 1) {
          agreeing = total >= 0 ? positive : negative;
          mixed = 0;
          for (let i = 0; i < n; i++) if ((agreeing >> i) & 1) mixed = Math.fround(mixed + changes[i]!);
        }
        const delta = Math.fround(Math.fround(mixed * coefficients[2 * n + agreeing]!) * lambda);
        const lane = (e - begin) % LANES;
        lanes[lane] = lanes[lane]! + Math.fround(delta * delta);
        if (delta === 0) outBits[e] = bits[e]!;
        else out[e] = values[e]! + delta;
      }
      counts[2 * block] = conflicts;
      squares[2 * block + 1] = sumLanes(lanes);
    });
  },
});
