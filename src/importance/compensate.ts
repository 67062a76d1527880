/** Kept entries that make up for those that went. */
import type { ComputeEngine, EngineBuffer } from '../compute/engine';
import type { FactorFacts } from './factor';
import type { Gram } from './gram';

/** `cg`: four masked conjugate-gradient steps per row, all rows at once. `sweep`: SparseGPT's pass over the columns. */
export type Compensation = 'cg' | 'sweep';

export interface Compensated {
  /** τ̂, f32 [rows, cols], 0 where the mask has no bit. The caller frees it. */
  tau: EngineBuffer;
  facts: FactorFacts;
}

/**
 * τ̂ on the kept entries with the least (τ̂ − τ) Hd (τ̂ − τ)ᵀ per row, Hd = H + 0.01·mean(diag H)·I.
 * A diagonal Gram has nothing to make up with: τ̂ is the masked τ.
 *
 * @param tau f32 [rows, cols]; unchanged
 * @param mask from `keepMask`
 * @throws what `ComputeEngine.read` throws
 */
export async function compensate(
  engine: ComputeEngine,
  tau: EngineBuffer,
  mask: EngineBuffer,
  rows: number,
  cols: number,
  gram: Gram,
  how: Compensation,
): Promise<Compensated> {
  throw new Error(`not yet: ${engine.kind} ${tau.label} ${mask.label} ${rows} ${cols} ${gram.width} ${how}`);
}
