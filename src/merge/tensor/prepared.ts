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
  /** How much each contributor counts in each row of a tensor, [contributors][rows]; undefined: by its weight alone. */
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

/** Contributors of a tensor with their resolved parameters. */
type Weighed = readonly { parameters: { readonly weight?: unknown } }[];

/** Weights of a tensor's contributors; 1 where the method knows none. */
export function weightsOf(models: Weighed): number[] {
  return models.map(({ parameters }) => Number(parameters.weight ?? 1));
}

/** Weights by the largest: those that are alike, whatever they are, count as 1 to the bit. */
export function relativeWeights(models: Weighed): number[] {
  const weights = weightsOf(models);
  return weights.map((weight) => weight / Math.max(...weights));
}

/** Each weight as its part of all, which add up to 1. */
export function sharesOf(weights: readonly number[]): number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** @throws AmalgamError `Internal`: a plan that needs it must be calibrated first */
export function requirePrepared(prepared: Prepared | undefined, tensor: string): Prepared {
  if (prepared) return prepared;
  throw fault(`${tensor} needs what was not worked out before the run.`);
}
