/**
 * Everything that crosses the worker boundary, as plain serialisable data. The studio, the headless command and the
 * tests share these types; nothing here has behaviour.
 */
import type { EngineChoice, EngineKind } from '../compute/engine';
import type { ErrorFacts } from '../errors';
import type { Dtype } from '../formats/dtype';
import type { Recipe } from '../formats/recipe';
import type {
  CollapseProgress,
  CollapseReport,
  CollapseRequest,
  MeasureDepthReport,
  MeasureDepthRequest,
} from './protocol-collapse';
import type {
  CompareProgress,
  CompareReport,
  CompareRequest,
  ExtractLoraReport,
  ExtractLoraRequest,
} from './protocol-compare';
import type { DatasetColumns, DatasetFacts, DatasetRequest, DatasetText } from './protocol-dataset';
import type { AheadReport, ImportanceApi, MaskFacts, WorkAhead } from './protocol-importance';
import type { ProfileProgress, ProfileReport, ProfileRequest } from './protocol-profile';
import type { PushApi } from './protocol-push';
import type {
  EvaluateManyReport,
  EvaluateManyRequest,
  EvaluateReport,
  EvaluateRequest,
  GenerateReport,
  GenerateRequest,
  RunningProgress,
} from './protocol-run';
import type { SignInApi } from './protocol-sign-in';
import type { VocabularyFacts } from './protocol-vocabulary';

// ---------------------------------------------------------------- engine

export interface EngineFacts {
  /** The engine `auto` takes here. */
  auto: EngineKind;
  webgpu: { available: boolean; adapter: string; isFallback: boolean; maxBufferBytes: number; why?: string };
  cpu: { adapter: string };
  storage: { available: boolean; why?: string };
  version: string;
}

// ---------------------------------------------------------------- models

export interface ModelFacts {
  /** What a recipe calls it: a path, or `owner/name@commit` for the Hub. */
  ref: string;
  title: string;
  origin: 'sample' | 'local' | 'served' | 'hub';
  kind: 'checkpoint' | 'adapter';
  /** `model_type` of config.json, or of the adapter's base where known. */
  family?: string;
  parameters: number;
  /** Bytes of its weight files. */
  bytes: number;
  /** Dtype → number of tensors. */
  dtypes: Partial<Record<Dtype, number>>;
  layers?: number;
  /** For an adapter: method and rank in words, and the base it names. */
  adapter?: { summary: string; rank: number; baseModel?: string };
  /** Hub only. */
  commit?: string;
  license?: string;
}

/** A file handed over from the window: the worker reads it in place by slices. */
export interface LocalFile {
  /** Relative path, forward slashes, beginning with the folder's own name. */
  path: string;
  file: File;
}

export interface HubQuery {
  text: string;
  /** Only models derived from this base (`base_model:adapter:<id>` / `base_model:finetune:<id>`). */
  derivedFrom?: { base: string; kind: 'adapter' | 'finetune' };
  limit: number;
}

export interface HubHit {
  id: string;
  downloads: number;
  likes: number;
  updatedAt: string;
  gated: false | 'auto' | 'manual';
  private: boolean;
  /** Parameter count from the safetensors index, where the Hub knows it. */
  parameters?: number;
}

// ---------------------------------------------------------------- plan

export interface PlanFacts {
  problems: PlanProblem[];
  /** What of the recipe means something else in mergekit, and what it makes of it. */
  elsewhere?: { setting: string; consequence: string }[];
  /** True when nothing in `problems` is an error. */
  clean: boolean;
  tensors: PlanTensorFacts[];
  contributors: string[];
  base?: string;
  bytesToDownload: number;
  bytesToRead: number;
  bytesToWrite: number;
  peakBytes: number;
  shards: number;
  outputFiles: string[];
  layers: number;
  /** Of a recipe with stages: their plans, in order. `problems` and the numbers of bytes above include them. */
  stages?: { name: string; facts: PlanFacts }[];
  /** Absent where the recipe cannot be planned that far. */
  vocabulary?: VocabularyFacts;
}

export interface PlanProblem {
  severity: 'error' | 'warning' | 'note';
  code: string;
  /** What is wrong, naming model and tensor. */
  message: string;
  /** What the person can do about it. */
  remedy: string;
  tensors?: string[];
}

export interface PlanTensorFacts {
  name: string;
  layer: number | null;
  module: string;
  shape: number[];
  dtype: string;
  elements: number;
  copied: boolean;
  /** The recipe's include and exclude leave it as the base has it. */
  leftOut?: boolean;
  /** Indices into `contributors` of the models that change this tensor. */
  contributors: number[];
}

// ---------------------------------------------------------------- merge

export interface MergeRequest {
  recipe: Recipe;
  engine: EngineChoice;
  destination: DestinationSpec;
  /** Elements of one tile; tests vary it. Default: from the memory budget. */
  tileElements?: number;
  /** Leaves the outputs of stages in the browser's storage, as `<output>-<stage>`. */
  keepStages?: boolean;
  /** Goes on with what an interrupted merge of this recipe left at the destination; begins where there is nothing. */
  resume?: boolean;
}

/** A merge that was cut off and can go on. */
export interface InterruptedRun {
  destination: { kind: 'downloads' | 'folder'; name: string };
  recipe: Recipe;
  /** It goes on with the engine it was begun on: others may differ in the last bit. */
  engine: EngineKind;
  adapter: string;
  /** ISO 8601. */
  startedAt: string;
  /** All 0 where it was cut off while downloading. */
  tensorsDone: number;
  tensors: number;
  /** Bytes of files that are written. */
  bytesDone: number;
  bytes: number;
}

/** A merge at work in another tab. */
export interface RunElsewhere {
  /** Of the output; empty while it is not known. */
  name: string;
  progress: Omit<Progress, 'finished'> | null;
}

export type DestinationSpec =
  /** A folder the person picked; a new sub-folder `name` is created in it. */
  | { kind: 'folder'; handle: FileSystemDirectoryHandle; name: string }
  /** Finished files stay in the browser's storage until they are downloaded. */
  | { kind: 'downloads'; name: string }
  /** The headless command's own server, same origin only. */
  | { kind: 'served'; url: string }
  /** Keeps nothing: only the report is wanted. */
  | { kind: 'nowhere' };

export interface Progress {
  /**
   * `checking`: what an interrupted merge left is read again and hashed. `measuring`: whole models are swept for a
   * threshold before the first tensor is merged.
   */
  stage: 'planning' | 'downloading' | 'hashing' | 'checking' | WorkAhead | 'measuring' | 'merging';
  /** Tensor or file at work. */
  item: string;
  tensorsDone: number;
  tensors: number;
  bytesDone: number;
  bytes: number;
  bytesPerSecond: number;
  secondsLeft: number | null;
  stages: StageSeconds;
  /** What is counted where it is neither tensors nor bytes: tokens, layers of models, values of λ. */
  counted?: { done: number; total: number; unit: string };
  /** Reports of tensors finished since the last progress message. */
  finished: TensorReport[];
  /** Which stage of a recipe of several is merged. */
  step?: { name: string; at: number; of: number };
  /** Something the person should know, said once: a device was lost and replaced. */
  note?: string;
}

export interface StageSeconds {
  read: number;
  upload: number;
  compute: number;
  readback: number;
  write: number;
}

/** The merge report: one schema for command, studio and tests. */
export interface MergeReport {
  recipe: Recipe;
  recipeSha256: string;
  engine: EngineKind;
  adapter: string;
  version: string;
  seconds: number;
  stages: StageSeconds;
  peakBytes: number;
  inputs: { id: string; file: string; sha256: string }[];
  shards: { file: string; bytes: number; sha256: string }[];
  tensors: TensorReport[];
  /** What was worked out ahead. Where λ was searched for, `recipe` has what was chosen. */
  ahead?: AheadReport;
  /** Of a recipe with stages: what was merged before, in order. */
  stagesMerged?: (MergeReport & { name: string })[];
}

export interface TensorReport {
  name: string;
  layer: number | null;
  module: string;
  shape: number[];
  dtype: string;
  elements: number;
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
}

export interface ContributorReport {
  id: string;
  /** Elements kept by the selector. */
  kept: number;
  /** Smallest |τ| kept, or 0 where the selector has no threshold. */
  threshold: number;
  /** ‖τ‖₂ before selection. */
  norm: number;
  /** ‖τ‖₂ of what was kept, before rescaling. */
  keptNorm: number;
}

/** A merged model and the recipe and inputs its metadata names, to be merged again and compared. */
export interface VerifyRequest {
  /** The opened merged model. */
  merged: string;
  recipe: Recipe;
  /** Input name → sha256, as the merged model's metadata has them. */
  inputs: Record<string, string>;
  engine: EngineChoice;
}

export interface VerifyReport {
  /** True when every shard has the bytes that the recipe gives. */
  agrees: boolean;
  shards: { file: string; stored: string; merged: string }[];
  /** Inputs whose sha256 is not the one the metadata names. */
  changedInputs: string[];
  engine: EngineKind;
  seconds: number;
}

// ---------------------------------------------------------------- storage

export interface CacheFacts {
  /** Masks, solved changes and texts that models wrote. */
  masks: MaskFacts[];
  blobs: { sha256: string; bytes: number; name: string }[];
  outputs: { name: string; bytes: number; complete: boolean }[];
}

// ---------------------------------------------------------------- the engine as the client sees it

export interface EngineApi extends ImportanceApi, PushApi, SignInApi {
  facts(): Promise<EngineFacts>;
  /** The sample family that ships inside, opened. */
  openSample(): Promise<ModelFacts[]>;
  /** Opens every model folder found in the files (a folder with a config or weights is a model). */
  openLocal(files: LocalFile[]): Promise<ModelFacts[]>;
  /** Opens `owner/name[@revision]` or a Hub URL; the revision is resolved to a commit and pinned. */
  openHub(idOrUrl: string): Promise<ModelFacts>;
  /** Opens a folder that the page's own origin serves under `url` (headless only), under the given recipe name. */
  openServed(ref: string, url: string): Promise<ModelFacts>;
  setHub(hub: { url?: string; token?: string | null }): Promise<void>;
  searchHub(query: HubQuery): Promise<HubHit[]>;
  plan(recipe: Recipe): Promise<PlanFacts>;
  merge(request: MergeRequest, onProgress: (progress: Progress) => void): Promise<MergeReport>;
  /** The statistics pass: task vectors measured, nothing merged. Any other job stops it (`Cancelled`). */
  profile(request: ProfileRequest, onProgress: (progress: ProfileProgress) => void): Promise<ProfileReport>;
  /** Merges again what a merged model's metadata says, keeps nothing, and compares the bytes. */
  verify(request: VerifyRequest, onProgress: (progress: Progress) => void): Promise<VerifyReport>;
  /** Perplexity of a model or of a merge that is not written. */
  evaluate(
    request: EvaluateRequest,
    onProgress: (progress: RunningProgress) => void,
  ): Promise<EvaluateReport>;
  /** Several models and merges on the same texts, side by side. */
  evaluateMany(
    request: EvaluateManyRequest,
    onProgress: (progress: RunningProgress) => void,
  ): Promise<EvaluateManyReport>;
  generate(
    request: GenerateRequest,
    onProgress: (progress: RunningProgress) => void,
  ): Promise<GenerateReport>;
  /** How two models differ, tensor by tensor. */
  compare(request: CompareRequest, onProgress: (progress: CompareProgress) => void): Promise<CompareReport>;
  /** The difference of two models as a LoRA adapter in PEFT's format. */
  extractLora(
    request: ExtractLoraRequest,
    onProgress: (progress: CompareProgress) => void,
  ): Promise<ExtractLoraReport>;
  /** Which layers could go: block influence, angular distances, similarity curve. Nothing is written. */
  measureDepth(
    request: MeasureDepthRequest,
    onProgress: (progress: CollapseProgress) => void,
  ): Promise<MeasureDepthReport>;
  /** A shallower model: layers collapsed, measured, and written as a checkpoint. */
  collapse(
    request: CollapseRequest,
    onProgress: (progress: CollapseProgress) => void,
  ): Promise<CollapseReport>;
  /** Opens a dataset on the Hub, `owner/name[@revision]` or its page's address, pinned to a commit. */
  openDataset(idOrUrl: string): Promise<DatasetFacts>;
  /** The text columns of a file of a dataset. */
  datasetColumns(ref: string, path: string): Promise<DatasetColumns>;
  /** Text out of a file of a dataset; of a large file only the parts that are needed are read. */
  readDataset(request: DatasetRequest, onProgress: (progress: RunningProgress) => void): Promise<DatasetText>;
  /** The evaluation texts of the sample family. */
  sampleTexts(): Promise<{ name: string; text: string }[]>;
  /**
   * Cancels the running job; it rejects with `Cancelled` and leaves nothing that looks complete. What a merge has
   * written stays to be resumed where its destination can keep it, and can be discarded.
   */
  cancel(): Promise<void>;
  /** Merges that were cut off and can go on, none of them running, the newest first. */
  interrupted(): Promise<InterruptedRun[]>;
  /** Forgets an interrupted merge. Files in a picked folder stay. */
  discardInterrupted(destination: InterruptedRun['destination']): Promise<void>;
  /** Follows the merge of another tab: what it does, and null when there is none. Never resolves. */
  follow(onRun: (run: RunElsewhere | null) => void): Promise<never>;
  /** Makes the tab that merges stop; its merge can then be resumed here. @throws Busy when it does not */
  takeOver(): Promise<void>;
  /** A finished output file of a `downloads` merge, disk-backed. */
  outputFile(name: string, file: string): Promise<File>;
  cache(): Promise<CacheFacts>;
  deleteCached(kind: 'blob' | 'output' | 'masks', id: string): Promise<void>;
}

/** How a call ends on the other side of the boundary: comlink itself would strip an error of its code. */
export type Outcome = { value: unknown } | { error: ErrorFacts };

/** The one method the worker exposes; `port` carries progress messages. */
export interface RemoteEngine {
  call(method: keyof EngineApi, args: unknown[], port?: MessagePort): Promise<Outcome>;
}
