import inputSquaresWgsl from '../../../shaders/input-squares.wgsl?raw';
import { defineKernel } from '../kernel';

/** squares += Σ x², column by column. See shaders/input-squares.wgsl. */
export const inputSquares = defineKernel({
  id: 'input-squares',
  wgsl: inputSquaresWgsl,
  params: { rows: 'u32', first: 'u32', stride4: 'u32', width4: 'u32' },
  buffers: { x: 'read', squares: 'read_write' },
  cpu({ params, f32 }) {
    const { rows, first, stride4, width4 } = params;
    const x = f32('x');
    const squares = f32('squares');
    const sums = new Float64Array(4 * width4);
    for (let r = first; r < first + rows; r++) {
      for (let c = 0; c < 4 * width4; c++) sums[c]! += x[r * 4 * stride4 + c]! ** 2;
    }
    for (const [c, sum] of sums.entries()) squares[c]! += sum;
  },
});
