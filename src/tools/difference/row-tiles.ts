import { BLOCK } from '../../backend/kernel';
import { PANEL_CHUNK } from '../../backend/kernels/products';
import type { Tile } from '../../merge/tensor/tiles';

/** A tensor seen as a matrix: its last dimension are the columns; a vector is one row. */
export interface MatrixShape {
  rows: number;
  cols: number;
}

export function matrixShape(shape: readonly number[]): MatrixShape {
  const cols = shape.at(-1) ?? 1;
  return { rows: shape.slice(0, -1).reduce((n, extent) => n * extent, 1), cols };
}

/**
 * Cuts a matrix into tiles of at most `tileElements`: whole rows, a multiple of 64 of them where that many fit, so that
 * products do not depend on the tile size; a row that does not fit is cut at multiples of 4096 columns.
 */
export function cutRows({ rows, cols }: MatrixShape, tileElements: number): Tile[] {
  const tiles: Tile[] = [];
  const elements = rows * cols;
  if (cols > tileElements) {
    const piece = Math.floor(tileElements / BLOCK) * BLOCK;
    for (let row = 0; row < rows; row++) {
      const end = (row + 1) * cols;
      for (let begin = row * cols; begin < end; begin += piece) {
        tiles.push({ begin, end: Math.min(begin + piece, end) });
      }
    }
    return tiles;
  }
  const fit = Math.floor(tileElements / cols);
  const size = (fit < PANEL_CHUNK ? fit : Math.floor(fit / PANEL_CHUNK) * PANEL_CHUNK) * cols;
  for (let begin = 0; begin < elements; begin += size) {
    tiles.push({ begin, end: Math.min(begin + size, elements) });
  }
  return tiles;
}
