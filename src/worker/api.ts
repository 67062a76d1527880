/**
 * The engine as the other side of the worker boundary sees it. What its calls take and give stands in the `protocol-…`
 * files: plain serialisable data, shared by the studio, the headless command and the tests; nothing here has behaviour.
 */

import type { ErrorFacts } from '../errors';
import type { Recipe } from '../formats/recipe';
import type { BackendKind } from '../reports/backend';
import type {
  CollapseProgress,
  CollapseReport,
  CollapseRequest,
  MeasureDepthReport,
  MeasureDepthRequest,
} from '../reports/collapse';
import type {
  CompareProgress,
  CompareReport,
  CompareRequest,
  ExtractLoraReport,
  ExtractLoraRequest,
} from '../reports/compare';
import type { DatasetColumns, DatasetFacts, DatasetRequest, DatasetText } from '../reports/dataset';
import type {
  EvaluateManyReport,
  EvaluateManyRequest,
  EvaluateReport,
  EvaluateRequest,
  GenerateReport,
  GenerateRequest,
  RunningProgress,
} from '../reports/evaluate';
import type { ImportanceApi, MaskFacts } from '../reports/importance';
import type { Progress } from '../reports/job';
import type {
  InterruptedRun,
  MergeReport,
  MergeRequest,
  RunElsewhere,
  VerifyReport,
  VerifyRequest,
  VerifyTensorReport,
  VerifyTensorRequest,
} from '../reports/merge';
import type { HubHit, HubQuery, LocalFile, ModelFacts } from '../reports/models';
import type { PlanFacts } from '../reports/plan';
import type { ProfileProgress, ProfileReport, ProfileRequest } from '../reports/profile';
import type { PushApi } from '../reports/push';
import type { SignInApi } from '../reports/sign-in';

export interface WorkerFacts {
  /** The engine `auto` takes here. */
  auto: BackendKind;
  webgpu: { available: boolean; adapter: string; isFallback: boolean; maxBufferBytes: number; why?: string };
  cpu: { adapter: string };
  storage: { available: boolean; why?: string };
  version: string;
}

export interface CacheFacts {
  /** Masks, solved changes and texts that models wrote. */
  masks: MaskFacts[];
  blobs: { sha256: string; bytes: number; name: string }[];
  outputs: { name: string; bytes: number; complete: boolean }[];
}

export interface WorkerApi extends ImportanceApi, PushApi, SignInApi {
  facts(): Promise<WorkerFacts>;
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
  /** Computes one tensor of a merge on both engines. */
  verifyTensor(
    request: VerifyTensorRequest,
    onProgress: (progress: RunningProgress) => void,
  ): Promise<VerifyTensorReport>;
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
export interface RemoteWorker {
  call(method: keyof WorkerApi, args: unknown[], port?: MessagePort): Promise<Outcome>;
}
