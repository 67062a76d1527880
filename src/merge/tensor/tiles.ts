import { BLOCK } from '../../backend/kernel';
import { COLUMN_ROWS } from '../../backend/kernels/products';
import { AmalgamError } from '../../errors';

/** A run of consecutive elements of a tensor: flat indices [begin, end). */
export interface Tile {
  begin: number;
  end: number;
}

/**
 * Cuts `elements` into tiles of at most `tileElements`. Every tile but the last is a multiple of BLOCK (reductions and
 * ties are defined on blocks) and of every one of `groups`, so that row-wise steps see whole rows.
 * @throws AmalgamError `LimitExceeded` when whole rows and whole blocks do not fit into one tile
 */
export function cutTiles(elements: number, tileElements: number, ...groups: number[]): Tile[] {
  const unit = groups.reduce(leastCommonMultiple, BLOCK);
  const size = Math.floor(tileElements / unit) * unit;
  if (elements > tileElements && size === 0) {
    throw new AmalgamError(
      'LimitExceeded',
      `Rows of ${Math.max(...groups)} elements do not fit into tiles of ${tileElements} elements (${unit} needed).`,
      'Use an adapter without DoRA and a method that works on whole tensors, or a device with larger buffers.',
    );
  }
  const tiles: Tile[] = [];
  for (let begin = 0; begin < elements; ) {
    const end = elements - begin <= tileElements ? elements : begin + size;
    tiles.push({ begin, end });
    begin = end;
  }
  return tiles;
}

/** The smallest tiles that a tensor can be cut into, or all of it where that is less. */
export function leastTile(elements: number, ...groups: number[]): number {
  return Math.min(Math.ceil(elements / BLOCK) * BLOCK, groups.reduce(leastCommonMultiple, BLOCK));
}

function leastCommonMultiple(a: number, b: number): number {
  let x = a;
  let y = b;
  while (y > 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

// Vectors within a tensor: all of it, its rows (last dimension), or its columns (first dimension).

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
