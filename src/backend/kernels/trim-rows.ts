import trimRowsWgsl from '../../../shaders/trim-rows.wgsl?raw';
import { defineKernel } from '../kernel';
import { ROW_LIBRARY, type RowForm } from './row-form';

const define = (form: RowForm) =>
  defineKernel({
    id: `trim-rows-${form}`,
    wgsl: trimRowsWgsl,
    libraries: [ROW_LIBRARY[form]],
    params: { rows: 'u32', cols: 'u32', keep: 'u32' },
    buffers: { keys: 'read_write' },
    cpu({ params, u32 }) {
      const { rows, cols, keep } = params;
      const keys = u32('keys');
      const bins = new Uint32Array(256);
      for (let begin = 0; begin < rows * cols; begin += cols) {
        const row = keys.subarray(begin, begin + cols);
        let { threshold, equal } = keepLargest(row, keep, bins);
        for (let c = 0; c < cols; c++) {
          if (row[c]! < threshold || (row[c] === threshold && equal-- <= 0)) row[c] = 0;
        }
      }
    },
  });

/**
 * The smallest of the `keep` largest keys, and how many keys equal to it are among them: byte by byte from the top, four
 * readings of the row and no sorting.
 */
function keepLargest(
  row: Uint32Array,
  keep: number,
  bins: Uint32Array,
): { threshold: number; equal: number } {
  let [threshold, equal] = [0, keep];
  for (let shift = 24; shift >= 0; shift -= 8) {
    bins.fill(0);
    for (const key of row) if ((key >>> shift) >>> 8 === threshold) bins[(key >>> shift) & 255]!++;
    let byte = 255;
    while (bins[byte]! < equal) equal -= bins[byte--]!;
    threshold = (threshold << 8) | byte;
  }
  return { threshold, equal };
}

/** The largest keys of every row. See shaders/trim-rows.wgsl. */
export const trimRows = { group: define('group'), line: define('line') };
