/** Merging and verifying: requests and reports. The merge report is one schema for command, studio and tests. */

import type { CardResult } from '../formats/card-results';
import type { FamilyMember, LicenseFinding } from '../formats/model-family';
import type { OutputPart } from '../formats/output-part';
import type { Recipe } from '../formats/recipe';
import type { UseSnippet } from '../formats/use-snippets';
import type { BackendChoice, BackendKind } from './backend';
import type { FindBestReport, FindBestRequest } from './find-best';
import type { CalibrationReport } from './importance';
import type { DestinationSpec, JobReport, PhaseSeconds, Progress, TensorReport } from './job';
import type { CutReport } from './lora';

export interface MergeRequest {
  recipe: Recipe;
  engine: BackendChoice;
  destination: DestinationSpec;
  /** Elements of one tile; tests vary it. Default: from the memory budget. */
  tileElements?: number;
  /** The best merge of the recipe's base and contributors is found, and merged in its place. */
  recommended?: Omit<FindBestRequest, 'recipe' | 'engine'>;
  /** Weights on the Hub that are not in the cache pass by: they are stored nowhere. */
  stream?: boolean;
  /** Continues an interrupted merge of this recipe at the destination; begins where there is none. */
  resume?: boolean;
  /** Writes this part of the output alone. */
  part?: OutputPart;
  /** Scores of the same merge before it was written, for the model card. */
  results?: CardResult[];
}

/** An interrupted merge that can continue. */
export interface InterruptedRun {
  destination: { kind: 'downloads' | 'folder'; name: string };
  recipe: Recipe;
  /** Backend it was begun on and continues with: others may differ in the last bit. */
  engine: BackendKind;
  adapter: string;
  /** Its inputs pass by. */
  stream?: true;
  /** ISO 8601. */
  startedAt: string;
  /** All 0 where it was cut off while downloading. */
  tensorsDone: number;
  tensors: number;
  /** Bytes of files that are written. */
  bytesDone: number;
  bytes: number;
}

/** A merge that runs in another tab. */
export interface RunElsewhere {
  /** Of the output; empty while it is not known. */
  name: string;
  progress: Omit<Progress, 'finished'> | null;
}

/** The merge report: one schema for command, studio and tests. */
export interface MergeReport extends JobReport {
  recipe: Recipe;
  recipeSha256: string;
  /** Wall clock, adding up to `seconds`; absent in reports of versions that did not measure it. */
  phases?: PhaseSeconds;
  peakBytes: number;
  /** Hashes of files: `tree2:` and a tree hash, or the plain sha256 that the Hub has for an input. */
  inputs: { id: string; file: string; hash: string }[];
  shards: { file: string; bytes: number; hash: string }[];
  tensors: TensorReport[];
  /** Of inputs that passed by: bytes that came, of them those that came again, and files seen whole with the Hub's sha256. */
  passed?: { bytes: number; again: number; checked: number; files: number };
  /** Report of calibration. Where λ was searched for, `recipe` has the value chosen. */
  ahead?: CalibrationReport;
  /** Of a merge whose change was cut to a LoRA; `tensors` is empty then. */
  lora?: CutReport;
  /** How the output is run elsewhere; reports of older versions have none. */
  use?: UseSnippet[];
  /** Of the recommended merge: what was tried, and which was best. */
  recommended?: FindBestReport;
  /** Of a recipe with stages: what was merged before, in order. */
  stagesMerged?: (MergeReport & { name: string })[];
}

/** A merged model and the recipe and inputs its metadata names, to be merged again and compared. */
export interface VerifyRequest {
  /** The opened merged model. */
  merged: string;
  recipe: Recipe;
  /** Input name → hash, as the merged model's metadata, or the hashes beside it, have them. */
  inputs: Record<string, string>;
  /** Another program wrote it: its files have other headers, and may be cut elsewhere. */
  isForeign?: boolean;
  /** As of a merge. */
  stream?: boolean;
  engine: BackendChoice;
}

/** A stored shard beside the one that the recipe gives. */
export interface ShardComparison {
  file: string;
  /** The headers have the same bytes: names, places, metadata. Null for a model that another program wrote. */
  isHeaderSame: boolean | null;
  /** Its tensors, as many as there are. */
  tensors: number;
  /** Tensors that have other bytes, or are not there, in their order. */
  differing: TensorComparison[];
}

export interface TensorComparison {
  name: string;
  /** Steps of its dtype between two of its elements, at most; null where it is not there in that dtype and shape. */
  steps: number | null;
}

/** The files of an output beside the hashes that were written with it, by their paths. */
export interface WrittenFiles {
  /** How many the list has. */
  listed: number;
  missing: string[];
  differing: string[];
  /** There, and not in the list. */
  unlisted: string[];
}

export interface VerifyReport {
  /** True when every shard has the bytes that the recipe gives, and every file those that were written. */
  agrees: boolean;
  /** Null for an output that has no list of hashes. */
  files: WrittenFiles | null;
  shards: ShardComparison[];
  /** Tree hashes of the shards that the recipe gives, and hashes of the files it was read from, by their names. */
  outputs: Record<string, string>;
  inputs: Record<string, string>;
  /** Inputs whose hash is not the one that the output names. */
  changedInputs: string[];
  /** Inputs that the output names, and that were not read: the recipe leads to no such file here. */
  uncheckedInputs: string[];
  /** The model's family on the Hub, and what its licenses forbid of the license that the model has. */
  family: FamilyMember[];
  licenses: LicenseFinding[];
  engine: BackendKind;
  seconds: number;
}
