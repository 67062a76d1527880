/** Types shared by all jobs: destination, progress, report of a tensor. */

import type { Computed } from './backend';
import type { TensorOutline } from './plan';

export type DestinationSpec =
  /** A folder the person picked; a new sub-folder `name` is created in it. */
  | { kind: 'folder'; handle: FileSystemDirectoryHandle; name: string }
  /** Finished files stay in the browser's storage until they are downloaded. */
  | { kind: 'downloads'; name: string }
  /** The output folder that the command has begun. */
  | { kind: 'disk'; name?: string }
  /** Writes nothing: only the report is wanted. */
  | { kind: 'nowhere' };

export interface Progress {
  /**
   * `checking`: what an interrupted merge left is read again and hashed. `measuring`: whole models are read for a
   * threshold before the first tensor is merged.
   */
  phase: 'planning' | 'downloading' | 'hashing' | 'checking' | CalibrationPhaseName | 'measuring' | 'merging';
  /** Current tensor or file. */
  item: string;
  tensorsDone: number;
  tensors: number;
  bytesDone: number;
  bytes: number;
  bytesPerSecond: number;
  secondsLeft: number | null;
  stages: WorkSeconds;
  /** Part of the job under way; `secondsLeft` is that of all parts. */
  phaseNumber?: { at: number; of: number };
  /** Wall clock of the phases so far. */
  phases?: PhaseSeconds;
  /** Other counts of the progress than tensors and bytes: tokens, layers of models, values of λ. */
  counted?: { done: number; total: number; unit: string };
  /** Reports of tensors finished since the last progress message. */
  finished: TensorReport[];
  /** Stage of a recipe of several, or step of several, under way; `share` of all of them, where it is known. */
  step?: { name: string; at: number; of: number; share?: number };
  /** Notice for the person, sent once: a device was lost and replaced. */
  note?: string;
}

/** Done and total of a progress, whatever it counts. */
export function amountOf({ counted, bytesDone, bytes }: Progress): { done: number; total: number } {
  return counted ?? { done: bytesDone, total: bytes };
}

/** The same of any job that goes through tensors or files, whatever its phases are called and it reports of a tensor. */
export type TensorProgress = Omit<Progress, 'phase' | 'finished'> & { phase: string };

export interface WorkSeconds {
  read: number;
  upload: number;
  compute: number;
  readback: number;
  write: number;
}

/** What any job that goes through tensors says of itself. */
export interface JobReport extends Computed {
  version: string;
  /** Seconds of each kind of work; several may run at once. */
  stages: WorkSeconds;
}

/** Wall clock of each phase, and of what lies between them; they add up to all of the time. */
export type PhaseSeconds = Partial<Record<Progress['phase'] | 'opening' | 'finishing', number>>;

export interface TensorReport extends TensorOutline {
  /** True when the bytes were copied without any arithmetic. */
  copied: boolean;
  contributors: ContributorReport[];
  /** Share of elements where kept contributions disagree in sign, in [0, 1]. */
  signConflict: number;
  /** Pairwise cosine of the task vectors; NaN-free, 0 where a vector is zero. */
  cosine: number[][];
  /** ‖W₀‖₂ where the contributors' norms are those of changes to it, else 0. */
  baseNorm: number;
  /** ‖output − base‖ / ‖base‖. */
  outputChange: number;
  /** NaN and Inf counted in inputs and output. */
  nonFinite: number;
  /** Counted while the tensor was written; absent in a copied one, and in reports of versions that did not count. */
  counts?: MergeCounts | undefined;
}

/** Exact counts of the elements of one tensor by the merge's effect on them. */
export interface MergeCounts {
  /** Elements whose written value is the base's value in the output's dtype; null where there is no base. */
  atBase: number | null;
  /**
   * Elements in which two contributors both keep a change other than 0, contributor by contributor; the diagonal counts
   * each one's own. Empty for methods that keep no task vector by itself.
   */
  shared: number[][];
  /** Each contributor's kept changes that the sign election drops. Empty where there is no election. */
  lost: number[];
}

export interface ContributorReport {
  id: string;
  /** Elements kept by the selector. */
  kept: number;
  /** Smallest |τ| kept, or 0 where the selector has no threshold. */
  threshold: number;
  /** ‖τ‖₂ before selection. */
  norm: number;
  /** ‖τ‖₂ of what was kept, before rescaling; null where it is not measured. */
  keptNorm: number | null;
  /** ‖τ̂‖₂ of what was kept, after rescaling, before weights; absent in reports of versions that did not measure it. */
  rescaledNorm?: number;
}

/** Stages of it: models write text, models read theirs and are measured, λ is searched for. */
export type CalibrationPhaseName = 'writing' | 'calibrating' | 'searching';
