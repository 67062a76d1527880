/** Weights stored [in, out] (Conv1D) turned to [out, in] and back. */
import type { ComputeEngine, EngineBuffer } from '../compute/engine';

/** y[c, r] = x[r, c]. @param x f32 [rows, cols] @returns f32 [cols, rows]; the caller frees it */
export function transpose(engine: ComputeEngine, x: EngineBuffer, rows: number, cols: number): EngineBuffer {
  throw new Error(`not yet: ${engine.kind} ${x.label} ${rows} ${cols}`);
}
