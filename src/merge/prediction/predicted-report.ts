/** Reports of merges that were not run. */

import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ContributorReport, MergeCounts, TensorReport } from '../../reports/job';

/** How far off a contributor's predicted numbers may be. */
export interface ContributorError {
  /** Of the kept share. */
  kept: number;
  /** Of the kept energy as a share of all. */
  energy: number;
  /** Of the norm of what is kept, as a part of it. */
  norm: number;
  /** Of the threshold, as a part of it. */
  threshold: number;
}

/** A report of a merge that was not run. */
export interface PredictedReport extends TensorReport {
  /** `merge`: all of it. `changes`: only norms and cosines; what this method does to them shows when it runs. */
  readonly predicted: 'merge' | 'changes';
  /** Elements of the sample from which counts, sign conflict and change were predicted; 0 where they are exact. */
  readonly sampled: number;
  readonly errors: readonly ContributorError[];
  /** Whether the change of the output follows from products alone. */
  readonly exactChange: boolean;
  /** Masks are drawn: which ones shows when the merge runs, even where the sample is the whole tensor. */
  readonly isRandom: boolean;
}

export function isPredicted(report: TensorReport): report is PredictedReport {
  return 'predicted' in report;
}

/** Whether only norms and cosines are known before the merge runs. */
export function awaitsMerge(report: TensorReport): boolean {
  return isPredicted(report) && report.predicted === 'changes';
}

/** The error of a share of `of` elements of a tensor that was found in its sample; 0 in a report of a merge that ran. */
export function sampledError(report: TensorReport, share: number, of: number): number {
  if (!isPredicted(report)) return 0;
  const size = (report.sampled * of) / report.elements;
  return report.isRandom
    ? shareError(share, (size * of) / (size + of), Number.POSITIVE_INFINITY)
    : shareError(share, size, of);
}

/** Figures of a tensor across its models, computed from the sample when they are asked for. */
interface LazyFigures {
  signConflict(): number;
  outputChange(): number;
  counts(): MergeCounts | undefined;
}

/** Normal quantile of the errors that are stated: a little more than 95 % of cells lie within. */
const QUANTILE = 2.25;

/**
 * Half the width of the interval in which a share lies that was found in `size` of `all` elements (Wilson's score
 * interval with the finite-population correction; Wilson 1927, Cochran 1977).
 */
export function shareError(share: number, size: number, all: number): number {
  if (size <= 0) return 1;
  if (size >= all) return 0;
  const z2 = QUANTILE ** 2 * (1 - size / all);
  return (
    Math.sqrt(z2 * ((share * (1 - share)) / size + z2 / (4 * size * size))) / (1 + z2 / size) +
    (Math.abs(1 - 2 * share) * z2) / (2 * size) / (1 + z2 / size)
  );
}

/** A report as plain data, with the values that a predicted one computes on access. */
export function plainReport(of: TensorReport): TensorReport {
  const { counts, signConflict, outputChange } = of;
  return { ...of, signConflict, outputChange, counts: counts && { ...counts } };
}

/** The part of a tensor's report that is predicted without its sample. */
interface Outline {
  statistics: DeltaStatistics;
  cosine: number[][];
  contributors: ContributorReport[];
  errors: readonly ContributorError[];
  predicted: PredictedReport['predicted'];
  exactChange: boolean;
  isRandom: boolean;
}

/** A predicted report whose joint values of the models are computed on first access. */
export class LazyReport implements PredictedReport {
  readonly name: string;
  readonly layer: number | null;
  readonly module: string;
  readonly shape: number[];
  readonly dtype: string;
  readonly elements: number;
  readonly copied = false;
  readonly contributors: ContributorReport[];
  readonly cosine: number[][];
  readonly baseNorm: number;
  readonly nonFinite: number;
  readonly predicted: PredictedReport['predicted'];
  readonly sampled: number;
  readonly errors: readonly ContributorError[];
  readonly exactChange: boolean;
  readonly isRandom: boolean;
  readonly #lazy: LazyFigures;
  #conflict: number | undefined;
  #change: number | undefined;
  #counts: MergeCounts | undefined;

  constructor(
    { statistics, cosine, contributors, errors, predicted, exactChange, isRandom }: Outline,
    dtype: string,
    lazy: LazyFigures,
  ) {
    this.name = statistics.name;
    this.layer = statistics.layer;
    this.module = statistics.module;
    this.shape = statistics.shape;
    this.dtype = dtype;
    this.elements = statistics.elements;
    this.contributors = contributors;
    this.cosine = cosine;
    this.baseNorm = Math.sqrt(statistics.products[0]![0]!);
    this.nonFinite = statistics.nonFinite;
    this.predicted = predicted;
    this.sampled = statistics.sample.base.length;
    this.errors = errors;
    this.exactChange = exactChange;
    this.isRandom = isRandom;
    this.#lazy = lazy;
  }

  get signConflict(): number {
    this.#conflict ??= this.#lazy.signConflict();
    return this.#conflict;
  }

  get outputChange(): number {
    this.#change ??= this.#lazy.outputChange();
    return this.#change;
  }

  get counts(): MergeCounts | undefined {
    if (this.predicted === 'changes') return undefined;
    this.#counts ??= this.#lazy.counts();
    return this.#counts;
  }
}
