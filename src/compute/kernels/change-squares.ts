import changeSquaresWgsl from '../../../shaders/change-squares.wgsl?raw';
import { dotBlock, eachBlock } from '../blocks';
import { exact, hasSmall } from '../exact';
import { BLOCK, defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Block sums of (out − base)². See shaders/change-squares.wgsl. */
export const changeSquares = defineKernel({
  id: 'change-squares',
  wgsl: composeWgsl(changeSquaresWgsl),
  params: { elements: 'u32' },
  buffers: { values: 'read', out: 'read', sums: 'read_write' },
  cpu({ params, f32 }) {
    const values = f32('values');
    const out = f32('out');
    const sums = f32('sums');
    const change = new Float32Array(BLOCK);
    const words = new Uint32Array(change.buffer);
    eachBlock(params.elements, (begin, end, block) => {
      const n = end - begin;
      for (let e = 0; e < n; e++) change[e] = exact(out[begin + e]! - values[begin + e]!);
      sums[block] = dotBlock(change, 0, 0, n, hasSmall(words, 0, n));
    });
  },
});
