/** How much each input column matters. Every score of an entry is τ² · c_j with one c per column j. */
import type { ComputeEngine, EngineBuffer } from '../compute/engine';
import type { FactorFacts } from './factor';
import type { Gram } from './gram';

/**
 * With H = 2/n · S and Hd = H + λ·mean(diag H)·I (docs/importance.md):
 * wanda c = H_jj (Sun et al. 2023); obs c = 1/[Hd⁻¹]_jj (Hassibi and Stork 1993); sparsegpt c = 1/U_jj², Hd⁻¹ = UᵀU
 * (Frantar and Alistarh 2023).
 */
export type ScoreKind = 'wanda' | 'obs' | 'sparsegpt';

export interface ColumnScores {
  /** √c_j, f32 [width]; 0 for dead inputs. The caller frees it. */
  scale: EngineBuffer;
  facts: FactorFacts;
}

/** @throws RangeError when no token was added; what `ComputeEngine.read` throws */
export async function columnScores(
  engine: ComputeEngine,
  gram: Gram,
  score: ScoreKind,
): Promise<ColumnScores> {
  throw new Error(`not yet: ${engine.kind} ${gram.width} ${score}`);
}
