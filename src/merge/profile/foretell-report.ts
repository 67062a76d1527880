/** Reports of merges that were not run. */
import type { ContributorReport, TensorReport } from '../../reports/job';
import type { TensorProfile } from '../../reports/profile';

/** A report of a merge that was not run. */
export interface ForetoldReport extends TensorReport {
  /** `merge`: all of it. `changes`: only norms and cosines; what this method does to them shows when it runs. */
  foretold: 'merge' | 'changes';
}

/** What the models do together. */
interface Judge {
  signConflict(): number;
  outputChange(): number;
}

/** A report as plain data: what a foretold one works out when it is looked at is in it. */
export function plainReport(of: TensorReport): TensorReport {
  return { ...of, signConflict: of.signConflict, outputChange: of.outputChange };
}

/** What the models do together is worked out when it is first looked at. */
export class LazyReport implements ForetoldReport {
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
  readonly foretold: ForetoldReport['foretold'];
  readonly #judge: Judge;
  #conflict: number | undefined;
  #change: number | undefined;

  constructor(
    { profile, cosine }: { profile: TensorProfile; cosine: number[][] },
    contributors: ContributorReport[],
    foretold: ForetoldReport['foretold'],
    judge: Judge,
  ) {
    this.name = profile.name;
    this.layer = profile.layer;
    this.module = profile.module;
    this.shape = profile.shape;
    this.dtype = profile.dtype;
    this.elements = profile.elements;
    this.contributors = contributors;
    this.cosine = cosine;
    this.baseNorm = Math.sqrt(profile.products[0]![0]!);
    this.nonFinite = profile.nonFinite;
    this.foretold = foretold;
    this.#judge = judge;
  }

  get signConflict(): number {
    this.#conflict ??= this.#judge.signConflict();
    return this.#conflict;
  }

  get outputChange(): number {
    this.#change ??= this.#judge.outputChange();
    return this.#change;
  }
}
