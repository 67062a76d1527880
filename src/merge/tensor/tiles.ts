import { BLOCK } from '../../backend/kernel';
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
