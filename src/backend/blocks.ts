/**
 * Block sums exactly as the shaders make them: lane l adds elements l, l + LANES, … of the block in f32, then the lane
 * sums are added in order. The loops are written out per operation: a callback per element costs ten times the sum.
 */
import { exact } from './exact';
import { BLOCK, LANES } from './kernel';

/** Lane sums of one block, reused: kernels on typed arrays run one at a time. */
const lanes = new Float32Array(LANES);

/**
 * Σ v[a + e] · v[b + e] over n elements, every product and sum rounded.
 * @param small whether one of the values is (exact.ts); without them nothing needs flushing
 */
export function dotBlock(v: Float32Array, a: number, b: number, n: number, small: boolean): number {
  lanes.fill(0);
  if (small) {
    for (let e = 0; e < n; e++) {
      const l = e % LANES;
      lanes[l] = exact(lanes[l]! + exact(v[a + e]! * v[b + e]!));
    }
    return sumLanes();
  }
  const whole = n - (n % LANES);
  for (let row = 0; row < whole; row += LANES) {
    const x = a + row;
    const y = b + row;
    for (let l = 0; l < LANES; l++) lanes[l] = lanes[l]! + Math.fround(v[x + l]! * v[y + l]!);
  }
  for (let l = 0; l < n - whole; l++) {
    lanes[l] = lanes[l]! + Math.fround(v[a + whole + l]! * v[b + whole + l]!);
  }
  return sumLanes();
}

/** Σ |v[a + e]| over n elements. Sums of one sign are never subnormal. */
export function absoluteBlock(v: Float32Array, a: number, n: number): number {
  lanes.fill(0);
  const whole = n - (n % LANES);
  for (let row = 0; row < whole; row += LANES) {
    const x = a + row;
    for (let l = 0; l < LANES; l++) lanes[l] = lanes[l]! + Math.abs(v[x + l]!);
  }
  for (let l = 0; l < n - whole; l++) lanes[l] = lanes[l]! + Math.abs(v[a + whole + l]!);
  return sumLanes();
}

/** The lane sums added in order. */
function sumLanes(): number {
  let total = 0;
  for (let l = 0; l < LANES; l++) total = exact(total + lanes[l]!);
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
