import trimRowsWgsl from '../../../shaders/trim-rows.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';
import { ROW_LIBRARY, type RowForm } from './row-form';

const define = (form: RowForm) =>
  defineKernel({
    id: `trim-rows-${form}`,
    wgsl: composeWgsl(trimRowsWgsl, ROW_LIBRARY[form]),
    params: { rows: 'u32', cols: 'u32', keep: 'u32' },
    buffers: { keys: 'read_write' },
    cpu({ params, u32 }) {
      const { rows, cols, keep } = params;
      const keys = u32('keys');
      for (let begin = 0; begin < rows * cols; begin += cols) {
        const row = keys.subarray(begin, begin + cols);
        const threshold = row.slice().sort()[cols - keep]!;
        let quota = keep;
        for (const key of row) if (key > threshold) quota--;
        for (let c = 0; c < cols; c++) {
          if (row[c]! < threshold || (row[c] === threshold && quota-- <= 0)) row[c] = 0;
        }
      }
    },
  });

/** The largest keys of every row. See shaders/trim-rows.wgsl. */
export const trimRows = { group: define('group'), line: define('line') };
