/** Keep-masks: which entries of a task vector matter most, one bit each. */
import type { ComputeEngine, EngineBuffer } from '../compute/engine';

/** Entries that compete for a share ρ: the whole tensor, each row, or each block of 128 columns (all rows). */
export type ScoreScope = 'tensor' | 'row' | 'block';

/** Words of one row of a packed mask: bit c mod 32 of word ⌊c/32⌋ is column c. */
export function maskRowWords(cols: number): number {
  return Math.ceil(cols / 32);
}

/**
 * The mask of the k = clamp(⌊ρn⌋, 1, n) largest |τ| · √c_j of every scope (none for ρ = 0), ties by lowest flat index.
 *
 * @param tau f32 [rows, cols]; unchanged
 * @param scale √c_j, f32 [cols], from `columnScores`
 * @returns u32 [rows, ⌈cols/32⌉], LSB first, the rest of a row's last word zero. The caller frees it.
 */
export async function keepMask(
  engine: ComputeEngine,
  tau: EngineBuffer,
  rows: number,
  cols: number,
  scale: EngineBuffer,
  density: number,
  scope: ScoreScope,
): Promise<EngineBuffer> {
  throw new Error(`not yet: ${engine.kind} ${tau.label} ${rows} ${cols} ${scale.label} ${density} ${scope}`);
}

/** τ[r, c] = 0 where the mask has no bit, in place. @param slot word of `values` at which row `firstRow` begins */
export function applyMask(
  engine: ComputeEngine,
  values: EngineBuffer,
  mask: EngineBuffer,
  rows: number,
  cols: number,
  slot = 0,
  firstRow = 0,
): void {
  throw new Error(
    `not yet: ${engine.kind} ${values.label} ${mask.label} ${rows} ${cols} ${slot} ${firstRow}`,
  );
}
