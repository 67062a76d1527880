import matrixDiagonalWgsl from '../../../shaders/matrix-diagonal.wgsl?raw';
import { defineKernel } from '../kernel';

/** The diagonal of a square matrix. See shaders/matrix-diagonal.wgsl. */
export const matrixDiagonal = defineKernel({
  id: 'matrix-diagonal',
  wgsl: matrixDiagonalWgsl,
  params: { width: 'u32', out: 'u32' },
  buffers: { m: 'read', diagonal: 'read_write' },
  cpu({ params, f32 }) {
    const { width, out } = params;
    const m = f32('m');
    const diagonal = f32('diagonal');
    for (let j = 0; j < width; j++) diagonal[out + j] = m[j * (width + 1)]!;
  },
});
