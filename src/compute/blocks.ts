import { BLOCK, LANES } from './kernel';

/** Lane sums of one block, reused: kernels on typed arrays run one at a time. */
const lanes = new Float32Array(LANES);

/**
 * Sums `term(e)` over the elements of a block exactly as the shaders do: lane l adds elements l, l + LANES, … in f32,
 * then the lane sums are added in order. `term` must return a value already rounded to f32.
 */
export function blockSum(begin: number, end: number, term: (element: number) => number): number {
  lanes.fill(0);
  for (let row = begin; row < end; row += LANES) {
    const n = Math.min(LANES, end - row);
    for (let l = 0; l < n; l++) lanes[l] = lanes[l]! + term(row + l);
  }
  return sumLanes(lanes);
}

/** The lane sums added in order, in f32. */
export function sumLanes(sums: Float32Array): number {
  let total = 0;
  for (let l = 0; l < LANES; l++) total = Math.fround(total + sums[l]!);
  return total;
}

/** Calls `visit(begin, end, block)` for every block of a tile of `elements`. */
export function eachBlock(
  elements: number,
  visit: (begin: number, end: number, block: number) => void,
): void {
  for (let begin = 0, block = 0; begin < elements; begin += BLOCK, block++) {
    visit(begin, Math.min(begin + BLOCK, elements), block);
  }
}
