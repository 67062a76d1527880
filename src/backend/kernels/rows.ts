import copyColumnsWgsl from '../../../shaders/rows/copy-columns.wgsl?raw';
import embedWgsl from '../../../shaders/rows/embed.wgsl?raw';
import gatherRowsWgsl from '../../../shaders/rows/gather-rows.wgsl?raw';
import rearrangeWgsl from '../../../shaders/rows/rearrange.wgsl?raw';
import rowScaleWgsl from '../../../shaders/rows/row-scale.wgsl?raw';
import scatterRowsWgsl from '../../../shaders/rows/scatter-rows.wgsl?raw';
import sparseRowsWgsl from '../../../shaders/rows/sparse-rows.wgsl?raw';
import { f16ToF32 } from '../../formats/half';
import type { Backend } from '../backend';
import { exact } from '../exact';
import { defineKernel } from '../kernel';
import { DTYPE_CODE } from './encoding';

/** Row by row work on a workgroup (shaders/lib/row-group.wgsl) or on one invocation (shaders/lib/row-line.wgsl). */
export const ROW_LIBRARY = { group: 'rowGroup', line: 'rowLine' } as const;
export type RowForm = keyof typeof ROW_LIBRARY;

/** The form for this engine. */
export function rowForm({ software }: Pick<Backend, 'software'>): RowForm {
  return software ? 'line' : 'group';
}

/** Work of a kernel in this form. */
export function rowWork(form: RowForm) {
  const rows = form === 'line' ? 64 : 1;
  return { work: (params: Readonly<Record<'rows', number>>) => params.rows, span: () => rows };
}

/** V[row, :] ← factor[row] · V[row, :] in place. See shaders/rows/row-scale.wgsl. */
export const rowScale = defineKernel({
  id: 'row-scale',
  wgsl: rowScaleWgsl,
  params: { elements: 'u32', cols: 'u32', slot: 'u32' },
  buffers: { factor: 'f32', values: 'rw f32' },
  cpu({ params, f32 }) {
    const { elements, cols, slot } = params;
    const factor = f32('factor');
    const values = f32('values');
    for (let row = 0, e = 0; e < elements; row++) {
      const f = factor[row]!;
      for (const end = Math.min(e + cols, elements); e < end; e++) {
        values[slot + e] = exact(values[slot + e]! * f);
      }
    }
  },
});

/** Rows of a packed table, widened, scaled, stored or added. See shaders/rows/embed.wgsl. */
export const embed = defineKernel({
  id: 'embed',
  wgsl: embedWgsl,
  libraries: ['half'],
  params: {
    rows: 'u32',
    width: 'u32',
    stride: 'u32',
    dtype: 'u32',
    first: 'u32',
    count: 'u32',
    add: 'u32',
    scale: 'f32',
  },
  buffers: { table: 'u32', ids: 'u32', y: 'rw f32' },
  work: ({ rows }) => rows,
  span: () => 1,
  cpu({ params, f32, u32 }) {
    const { rows, width, stride, dtype, first, count, add, scale } = params;
    const words = u32('table');
    const halves = new Uint16Array(words.buffer, words.byteOffset, words.length * 2);
    const floats = f32('table');
    const ids = u32('ids');
    const y = f32('y');
    const bits = new Uint32Array(1);
    const value = new Float32Array(bits.buffer);
    for (let r = 0; r < rows; r++) {
      const id = ids[r]! - first;
      if (id < 0 || id >= count) continue;
      for (let i = 0; i < width; i++) {
        const e = id * width + i;
        if (dtype === DTYPE_CODE.F32) value[0] = floats[e]!;
        else bits[0] = dtype === DTYPE_CODE.BF16 ? halves[e]! << 16 : f16ToF32(halves[e]!);
        const at = r * stride + i;
        y[at] = (add === 1 ? y[at]! : 0) + scale * value[0]!;
      }
    }
  },
});

/** Chosen rows side by side. See shaders/rows/gather-rows.wgsl. */
export const gatherRows = defineKernel({
  id: 'gather-rows',
  wgsl: gatherRowsWgsl,
  params: { rows: 'u32', width: 'u32' },
  buffers: { x: 'f32', picks: 'u32', y: 'rw f32' },
  work: ({ rows }) => rows,
  span: () => 1,
  cpu({ params, f32, u32 }) {
    const { rows, width } = params;
    const x = f32('x');
    const y = f32('y');
    const picks = u32('picks');
    for (let r = 0; r < rows; r++) y.set(x.subarray(picks[r]! * width, (picks[r]! + 1) * width), r * width);
  },
});

/** Weighted rows added to others. See shaders/rows/scatter-rows.wgsl. */
export const scatterRows = defineKernel({
  id: 'scatter-rows',
  wgsl: scatterRowsWgsl,
  params: { rows: 'u32', width: 'u32', x_stride: 'u32', y_stride: 'u32' },
  buffers: { x: 'f32', picks: 'u32', factors: 'f32', y: 'rw f32' },
  work: ({ rows }) => rows,
  span: () => 1,
  cpu({ params, f32, u32 }) {
    const { rows, width, x_stride, y_stride } = params;
    const [x, factors, y] = [f32('x'), f32('factors'), f32('y')];
    const picks = u32('picks');
    for (let r = 0; r < rows; r++) {
      const to = picks[r]! * y_stride;
      for (let i = 0; i < width; i++) y[to + i]! += factors[r]! * x[r * x_stride + i]!;
    }
  },
});

/** Excess of each value over its row's mean + `deviations` · σ, at least 0, in place. See shaders/rows/sparse-rows.wgsl. */
export const sparseRows = defineKernel({
  id: 'sparse-rows',
  wgsl: sparseRowsWgsl,
  params: { rows: 'u32', width: 'u32', stride: 'u32', deviations: 'f32' },
  buffers: { x: 'rw f32' },
  work: ({ rows }) => rows,
  span: () => 64,
  cpu({ params: { rows, width, stride, deviations }, f32 }) {
    const x = f32('x');
    for (let r = 0; r < rows; r++) {
      const row = x.subarray(r * stride, r * stride + width);
      const mean = row.reduce((sum, v) => sum + v, 0) / width;
      const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / width;
      const bound = mean + deviations * Math.sqrt(variance);
      for (let i = 0; i < width; i++) row[i] = Math.max(0, row[i]! - bound);
    }
  },
});

/** A part of a matrix into a part of another. See shaders/rows/copy-columns.wgsl. */
export const copyColumns = defineKernel({
  id: 'copy-columns',
  wgsl: copyColumnsWgsl,
  params: {
    rows: 'u32',
    cols: 'u32',
    x_first: 'u32',
    x_stride: 'u32',
    x_begin: 'u32',
    y_first: 'u32',
    y_stride: 'u32',
    y_begin: 'u32',
    add: 'u32',
    scale: 'f32',
  },
  buffers: { x: 'f32', y: 'rw f32' },
  work: ({ rows, cols }) => rows * cols,
  span: () => 1024,
  cpu({ params, f32 }) {
    const { rows, cols, x_first, x_stride, x_begin, y_first, y_stride, y_begin, add, scale } = params;
    const x = f32('x');
    const y = f32('y');
    for (let r = 0; r < rows; r++) {
      const from = (x_first + r) * x_stride + x_begin;
      const to = (y_first + r) * y_stride + y_begin;
      if (add === 1) for (let c = 0; c < cols; c++) y[to + c] = y[to + c]! + scale * x[from + c]!;
      else if (scale === 1) y.set(x.subarray(from, from + cols), to);
      else for (let c = 0; c < cols; c++) y[to + c] = scale * x[from + c]!;
    }
  },
});

/** Columns transposed together on the processor. */
const COLUMNS = 16;

/** A matrix transposed. See shaders/rows/rearrange.wgsl. */
export const rearrange = defineKernel({
  id: 'rearrange',
  wgsl: rearrangeWgsl,
  params: { rows: 'u32', cols: 'u32' },
  buffers: { x: 'u32', y: 'rw u32' },
  work: ({ rows, cols }) => rows * cols,
  span: () => 1024,
  cpu({ params, u32 }) {
    const { rows, cols } = params;
    const x = u32('x');
    const y = u32('y');
    // few columns at a time: their lines of y stay in the cache
    for (let begin = 0; begin < cols; begin += COLUMNS) {
      const end = Math.min(cols, begin + COLUMNS);
      for (let r = 0; r < rows; r++) {
        for (let c = begin, at = r * cols; c < end; c++) y[c * rows + r] = x[at + c]!;
      }
    }
  },
});
