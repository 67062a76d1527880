// Rows of f32 to the blocks of a GGUF tensor, bit for bit as ggml's reference makes them.
import { encodeQ4K, encodeQ5K, encodeQ6K } from './lib/k-blocks';
import { encodeQ4_0, encodeQ4_1, encodeQ5_0, encodeQ5_1, encodeQ8_0, encodeWeighted } from './lib/simple-blocks';

/**
 * One row of `columns` f32, a whole number of blocks. `type`: ggml's number of it. `importance`: an f32 for every column,
 * or 0. `scratch`: 4 kB.
 */
export function encodeBlocks(
  x: usize,
  columns: i32,
  type: i32,
  importance: usize,
  out: usize,
  scratch: usize,
): void {
  if (type == 8) encodeQ8_0(x, columns, out);
  else if (type == 12) encodeQ4K(x, columns, importance, out, scratch);
  else if (type == 13) encodeQ5K(x, columns, importance, out, scratch);
  else if (type == 14) encodeQ6K(x, columns, importance, out, scratch);
  else if (importance) encodeWeighted(x, columns, importance, type < 6 ? 15 : 31, (type & 1) == 1, out, scratch);
  else if (type == 2) encodeQ4_0(x, columns, out, scratch);
  else if (type == 3) encodeQ4_1(x, columns, out, scratch);
  else if (type == 6) encodeQ5_0(x, columns, out, scratch);
  else encodeQ5_1(x, columns, out, scratch);
}
