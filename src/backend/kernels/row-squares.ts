import rowSquaresWgsl from '../../../shaders/row-squares.wgsl?raw';
import { dotBlock } from '../blocks';
import { hasSmall } from '../exact';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Σ_c V[row, c]² for the whole rows of a tile. See shaders/row-squares.wgsl. */
export const rowSquares = defineKernel({
  id: 'row-squares',
  wgsl: composeWgsl(rowSquaresWgsl),
  params: { rows: 'u32', cols: 'u32', slot: 'u32' },
  buffers: { values: 'read', squares: 'read_write' },
  cpu({ params, f32, u32 }) {
    const { rows, cols, slot } = params;
    const values = f32('values');
    const words = u32('values');
    const squares = f32('squares');
    for (let row = 0; row < rows; row++) {
      const begin = slot + row * cols;
      squares[row] = dotBlock(values, begin, begin, cols, hasSmall(words, begin, cols));
    }
  },
});
