/** Vectors within a tensor: all of it, its rows (last dimension), or its columns (first dimension). */
import { COLUMN_ROWS } from '../../backend/kernels/products';

export type VectorGroups = 'tensor' | 'rows' | 'columns';

/** Elements of a row: the last dimension. */
export function rowLength(shape: readonly number[]): number {
  return shape.at(-1) ?? 1;
}

/** Elements between neighbors of a column: all dimensions but the first. */
export function columnStride(shape: readonly number[]): number {
  return shape.slice(1).reduce((a, b) => a * b, 1);
}

/** A tensor of one dimension is one row and, as mergekit takes it, one column: a single vector either way. */
export function groupsOf(wanted: VectorGroups, shape: readonly number[]): VectorGroups {
  return shape.length < 2 ? 'tensor' : wanted;
}

/** Elements that a tile must be a multiple of, so that no group, or no partial sum of one, is cut. */
export function groupElements(groups: VectorGroups, shape: readonly number[]): number {
  if (groups === 'rows') return rowLength(shape);
  return groups === 'columns' ? COLUMN_ROWS * columnStride(shape) : 1;
}
