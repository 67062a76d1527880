/** What crosses between the command in Node and its page in Chromium: plain data, errors as facts. */

import type { ErrorFacts } from '../errors';
import type { Recipe } from '../formats/recipe';
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
import type { DatasetRequest, DatasetText } from '../reports/dataset';
import type {
  EvaluateReport,
  EvaluateRequest,
  GenerateReport,
  GenerateRequest,
  RunningProgress,
} from '../reports/evaluate';
import type { CalibrationText, ImportanceReport, ImportanceRequest } from '../reports/importance';
import type { Progress } from '../reports/job';
import type {
  InterruptedRun,
  MergeReport,
  MergeRequest,
  VerifyReport,
  VerifyRequest,
} from '../reports/merge';
import type { ModelFacts } from '../reports/models';
import type { PlanFacts } from '../reports/plan';
import type { ProfileReport, ProfileRequest } from '../reports/profile';
import type { WorkerFacts } from '../worker/api';

export type Outcome<T> = { value: T } | { error: ErrorFacts };

export interface OpenRequest {
  recipe: Recipe;
  hub: { url?: string; token?: string };
  /** Every repository of the recipe: served by the page's own server under `url`, or on the Hub. */
  models: { name: string; url?: string }[];
  /** Calibration texts by the names the recipe uses. */
  texts?: { name: string; text: CalibrationText }[];
}

export interface Opened {
  /** The recipe with Hub models pinned to the commit they were opened at. */
  recipe: Recipe;
  models: ModelFacts[];
}

/** On the page as `window.amalgamHeadless`. */
export interface HeadlessCalls {
  facts(): Promise<Outcome<WorkerFacts>>;
  open(request: OpenRequest): Promise<Outcome<Opened>>;
  plan(recipe: Recipe): Promise<Outcome<PlanFacts>>;
  merge(request: MergeRequest): Promise<Outcome<MergeReport>>;
  importance(request: ImportanceRequest): Promise<Outcome<ImportanceReport>>;
  /** Merges that were cut off in this browser's profile. */
  interrupted(): Promise<Outcome<InterruptedRun[]>>;
  /** `url` serves the merged folder. */
  verify(request: VerifyRequest & { url: string }): Promise<Outcome<VerifyReport>>;
  readDataset(request: DatasetRequest): Promise<Outcome<DatasetText>>;
  evaluate(request: EvaluateRequest): Promise<Outcome<EvaluateReport>>;
  generate(request: GenerateRequest): Promise<Outcome<GenerateReport>>;
  /** The statistics pass. What it measures stays in the page. */
  profile(request: ProfileRequest): Promise<Outcome<Omit<ProfileReport, 'tensors'>>>;
  /** Without `outputUrl` nothing is written. */
  compare(
    request: Omit<CompareRequest, 'destination'> & { outputUrl?: string },
  ): Promise<Outcome<CompareReport>>;
  extractLora(
    request: Omit<ExtractLoraRequest, 'destination'> & { outputUrl: string },
  ): Promise<Outcome<ExtractLoraReport>>;
  measureDepth(request: MeasureDepthRequest): Promise<Outcome<MeasureDepthReport>>;
  collapse(
    request: Omit<CollapseRequest, 'destination'> & { outputUrl: string },
  ): Promise<Outcome<CollapseReport>>;
}

/** Progress as the command prints it: the tensors' reports come with the final report. */
export type ProgressLine =
  | Omit<Progress, 'finished'>
  | Omit<CompareProgress, 'finished'>
  | Omit<CollapseProgress, 'finished'>;

/** What a job tells while it runs. */
export type AnyProgress = ProgressLine | RunningProgress;

declare global {
  interface Window {
    amalgamHeadless?: HeadlessCalls;
    /** Set by the command before a job. */
    amalgamProgress?: (progress: AnyProgress) => Promise<void>;
  }
}
