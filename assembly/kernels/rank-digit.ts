// Ranks of |τ| inside rows: shaders/rank-digit.wgsl.
import { rankRow } from './lib/ranks';

/**
 * Ranks 0 … cols − 1 of the elements of whole rows, smallest |τ| first and among equals the last index first.
 * `spare`: as many words as `ranks`; `scratch`: 16 KiB.
 */
export function rankRows(
  values: usize,
  elements: i32,
  cols: i32,
  spare: usize,
  ranks: usize,
  scratch: usize,
): void {
  for (let begin: usize = 0; begin < <usize>elements << 2; begin += <usize>cols << 2) {
    rankRow<u32>(values + begin, cols, spare + begin, ranks + begin, scratch);
  }
}
