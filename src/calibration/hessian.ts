/** H = 2/n · S of a Gram matrix: its properties by the diagonal. */
import { DAMPING } from './factor';
import type { Gram } from './gram';

export interface Hessian {
  /** Factor of S, usually 2/n. */
  scale: number;
  /** H_jj as measured: 0 for dead inputs. */
  diagonal: Float64Array;
  /** Inputs with H_jj = 0. */
  dead: number;
  damping: number;
  /** λ · mean(diag H), the mean taken with H_jj = 1 for dead inputs (Frantar and Alistarh 2023, `sparsegpt.py`). */
  shift(damping?: number): number;
}

/** @throws RangeError when no token was added; what `Backend.read` throws */
export async function hessianOf(gram: Gram, scale = 2 / gram.tokens): Promise<Hessian> {
  if (gram.tokens === 0) throw new RangeError('a Gram matrix without tokens');
  const diagonal = Float64Array.from(await gram.diagonal(), (s) => s * scale);
  const dead = diagonal.reduce((count, h) => count + +(h === 0), 0);
  const mean = (diagonal.reduce((sum, h) => sum + h, 0) + dead) / gram.width;
  return { scale, diagonal, dead, damping: DAMPING, shift: (damping = DAMPING) => damping * mean };
}
