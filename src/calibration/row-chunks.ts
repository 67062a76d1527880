/** Rows of weights that are worked on together: parts of tensors cut out, multiplied with square matrices, put back. */

import type { Backend, BackendBuffer } from '../backend/backend';
import { matmul, matmulForm } from '../backend/kernels/matmul';
import { copyColumns, rearrange } from '../backend/kernels/rows';
import { addScaled } from '../backend/kernels/sums';
import type { Queue } from '../forward/queue';

/** Most bytes of one buffer of a chunk. */
const CHUNK_BYTES = 64 << 20;

/** Position of a part of a matrix: its first row and column, and the elements from row to row. */
interface Place {
  buffer: BackendBuffer;
  stride: number;
  row?: number;
  column?: number;
}

/** A chunk of rows of `width` columns. */
export interface RowChunk {
  first: number;
  rows: number;
}

/** Chunks whose buffers, and product with a square matrix, stay within bounds. */
export function rowChunks(queue: Queue, rows: number, width: number): RowChunk[] {
  const most = Math.floor(Math.min(queue.dispatchWork / width ** 2, CHUNK_BYTES / (width * 4)));
  const size = Math.min(rows, Math.max(64, most));
  return Array.from({ length: Math.ceil(rows / size) }, (_, i) => ({
    first: i * size,
    rows: Math.min(size, rows - i * size),
  }));
}

/** Rows of the largest of the chunks. */
export function chunkRows(chunks: readonly RowChunk[]): number {
  return chunks[0]?.rows ?? 0;
}

/** Enqueues to = (add ? to : 0) + scale · from for rows × cols entries. */
export function enqueueCopy(
  queue: Queue,
  from: Place,
  to: Place,
  rows: number,
  cols: number,
  { add = false, scale = 1 } = {},
): void {
  queue.run(copyColumns, {
    params: {
      rows,
      cols,
      x_first: from.row ?? 0,
      x_stride: from.stride,
      x_begin: from.column ?? 0,
      y_first: to.row ?? 0,
      y_stride: to.stride,
      y_begin: to.column ?? 0,
      add: +add,
      scale,
    },
    buffers: { x: from.buffer, y: to.buffer },
  });
}

/** Enqueues y += scale · x over whole chunks. */
export function enqueueAdd(
  queue: Queue,
  x: BackendBuffer,
  y: BackendBuffer,
  scale: number,
  elements: number,
): void {
  queue.run(addScaled, { params: { elements, scale }, buffers: { x, y } });
}

/** Enqueues y = (add ? y : 0) + scale · x · Wᵀ; y [rows, width], x [rows, inputs], W [width, inputs]; square by default. */
export function enqueueProduct(
  queue: Queue,
  x: BackendBuffer,
  w: BackendBuffer,
  y: BackendBuffer,
  rows: number,
  width: number,
  { add = false, scale = 1, inputs = width } = {},
): void {
  const form = matmulForm(queue.engine);
  // in parts of the columns of y, so that no dispatch takes long
  const most = Math.max(64, Math.floor(queue.dispatchWork / (rows * inputs * 64)) * 64);
  for (let first = 0; first < width; first += most) {
    const outputs = Math.min(most, width - first);
    queue.run(
      matmul[form].F32,
      {
        params: {
          rows,
          outputs,
          inputs4: inputs / 4,
          w_first: first,
          x_stride4: inputs / 4,
          y_stride: width,
          y_begin: first,
          add: +add,
          biased: 0,
          scale,
        },
        // no bias: whatever is bound there is not read
        buffers: { weights: w, x, bias: x, y },
      },
      rows * inputs * outputs,
    );
  }
}

// Transpose of weights stored [in, out] (Conv1D) to [out, in] and back.

/** y[c, r] = x[r, c]. @param x f32 [rows, cols] @returns f32 [cols, rows]; the caller frees it */
export function transpose(
  engine: Pick<Backend, 'allocate' | 'run'>,
  x: BackendBuffer,
  rows: number,
  cols: number,
): BackendBuffer {
  const elements = rows * cols;
  const y = engine.allocate(elements * 4, 'transposed');
  engine.run(rearrange, { params: { rows, cols }, buffers: { x, y } });
  return y;
}
