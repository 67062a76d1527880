// Trimming by a mask of one bit per element: shaders/select-mask.wgsl.
import { applyBits } from './lib/masks';

/** Clears those of n f32 at `values` whose bit is not set. */
export function selectMask(values: usize, n: i32, mask: usize): void {
  applyBits(values, n, mask);
}
