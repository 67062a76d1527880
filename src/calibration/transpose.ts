/** Transpose of weights stored [in, out] (Conv1D) to [out, in] and back. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { rearrange } from '../backend/kernels/rows';

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
