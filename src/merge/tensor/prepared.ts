/**
 * Results of calibration (src/calibration), made ahead of a run: masks of a contributor's task vectors, and merged task
 * vectors. They are read tile by tile, wherever they are stored.
 */

import { fault } from '../../errors';
import type { ContributorReport } from '../../reports/job';

export interface Prepared {
  /** Mask of a contributor's task vector in a tensor; undefined where there is none (embeddings, norms). */
  selection(tensor: string, model: string): PreparedSelection | undefined;
  /** The merged change of a tensor; undefined where none was solved. */
  solution(tensor: string): PreparedSolution | undefined;
  /** How much each contributor counts in each row of a tensor, [contributors][rows]; undefined: all alike. */
  rowWeights(tensor: string): readonly Float64Array[] | undefined;
}

/** A choice among the elements of τ, or new values for them. Ranges are flat indices of the stored tensor. */
export type PreparedSelection = { kept: number } & (
  | {
      kind: 'mask';
      /** One bit per element of [begin, end), from the lowest bit of the first word on. */
      mask(begin: number, end: number): Promise<Uint32Array<ArrayBuffer>>;
    }
  | {
      kind: 'values';
      /** τ̂ of [begin, end), f32, zero where nothing stays. */
      values(begin: number, end: number): Promise<Float32Array<ArrayBuffer>>;
    }
);

export interface PreparedSolution {
  /** τ of [begin, end), f32. */
  values(begin: number, end: number): Promise<Float32Array<ArrayBuffer>>;
  /** Reports of the task vectors that it was solved from. */
  contributors: ContributorReport[];
  cosine: number[][];
}

/** @throws AmalgamError `Internal`: a plan that needs it must be calibrated first */
export function requirePrepared(prepared: Prepared | undefined, tensor: string): Prepared {
  if (prepared) return prepared;
  throw fault(`${tensor} needs what was not worked out before the run.`);
}
