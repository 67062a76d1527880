/** Weights stored [in, out] (Conv1D) turned to [out, in] and back. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { rearrange } from '../backend/kernels/rearrange';

/** y[c, r] = x[r, c]. @param x f32 [rows, cols] @returns f32 [cols, rows]; the caller frees it */
export function transpose(
  engine: Pick<Backend, 'allocate' | 'run'>,
  x: BackendBuffer,
  rows: number,
  cols: number,
): BackendBuffer {
  return rearranged(engine, x, rows, cols, false);
}

/** Rows and columns of a square matrix in reverse order. @returns f32 [width, width]; the caller frees it */
export function reversed(
  engine: Pick<Backend, 'allocate' | 'run'>,
  x: BackendBuffer,
  width: number,
): BackendBuffer {
  return rearranged(engine, x, width, width, true);
}

function rearranged(
  engine: Pick<Backend, 'allocate' | 'run'>,
  x: BackendBuffer,
  rows: number,
  cols: number,
  back: boolean,
): BackendBuffer {
  const elements = rows * cols;
  const y = engine.allocate(elements * 4, back ? 'reversed' : 'transposed');
  engine.run(rearrange, {
    params: { rows, cols, reversed: +back },
    buffers: { x, y },
    groups: Math.ceil(elements / 1024),
    elements,
  });
  return y;
}
