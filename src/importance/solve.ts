/** The Gram merge: task vectors combined where their models' inputs are active. */
import type { ComputeEngine, EngineBuffer } from '../compute/engine';
import type { FactorFacts } from './factor';
import type { Gram } from './gram';

export interface Solved {
  /** f32 [rows, cols]. The caller frees it. */
  tau: EngineBuffer;
  facts: FactorFacts;
}

/**
 * τ = (ΣGᵢ)⁻¹ ΣGᵢτ̂ᵢ for every row, Gᵢ = Hᵢ + 0.01·mean(diag Hᵢ)·I, Hᵢ = 2/nᵢ·Sᵢ: the minimiser of
 * Σ (τ − τ̂ᵢ) Gᵢ (τ − τ̂ᵢ)ᵀ, RegMean's closed form (Jin et al. 2023) on task vectors. Computed as the mean of the τ̂ᵢ and
 * the deviation from it, so that equal models give their own bits.
 *
 * @param grams one per model, all of one width and form
 * @param taus f32 [rows, cols] each; unchanged
 * @throws RangeError when forms or numbers do not match; what `ComputeEngine.read` throws
 */
export async function gramSolve(
  engine: ComputeEngine,
  grams: readonly Gram[],
  taus: readonly EngineBuffer[],
  rows: number,
  cols: number,
): Promise<Solved> {
  throw new Error(`not yet: ${engine.kind} ${grams.length} ${taus.length} ${rows} ${cols}`);
}
