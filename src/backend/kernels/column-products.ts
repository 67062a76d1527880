import columnProductsWgsl from '../../../shaders/column-products.wgsl?raw';
import { exact } from '../exact';
import { defineKernel } from '../kernel';
import { pairCount } from './inner-products';

/** Rows of one partial sum; as in shaders/column-products.wgsl. */
export const COLUMN_ROWS = 64;

/** Workgroups that cover a matrix of `rows` × `cols`. */
export function columnGroups(rows: number, cols: number): number {
  return Math.ceil(rows / COLUMN_ROWS) * Math.ceil(cols / 64);
}

/** Products column by column over blocks of 64 rows. See shaders/column-products.wgsl. */
export const columnProducts = defineKernel({
  id: 'column-products',
  wgsl: columnProductsWgsl,
  params: { elements: 'u32', slot: 'u32', stride: 'u32', count: 'u32', cols: 'u32' },
  buffers: { values: 'read', sums: 'read_write' },
  cpu({ params, f32 }) {
    const { elements, slot, stride, count, cols } = params;
    const values = f32('values');
    const sums = f32('sums');
    const rows = elements / cols;
    const pairs = pairCount(count);
    for (let begin = 0, block = 0; begin < rows; begin += COLUMN_ROWS, block++) {
      const end = Math.min(begin + COLUMN_ROWS, rows);
      let p = 0;
      for (let i = 0; i < count; i++) {
        for (let j = i; j < count; j++) {
          const out = (block * pairs + p++) * cols;
          sums.fill(0, out, out + cols);
          for (let row = begin; row < end; row++) {
            const a = slot + row * cols + i * stride;
            const b = slot + row * cols + j * stride;
            for (let c = 0; c < cols; c++) {
              sums[out + c] = exact(sums[out + c]! + exact(values[a + c]! * values[b + c]!));
            }
          }
        }
      }
    }
  },
});
