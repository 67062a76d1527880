/** The one job of the worker, and its progress. Plain, serializable data. */
import type { ErrorReport } from '../../errors';
import type { RunningProgress } from '../../reports/evaluate';
import type { FindBestProgress } from '../../reports/find-best';
import type { TensorProgress } from '../../reports/job';
import type { HubAccount, PushReport, PushTarget } from '../../reports/push';
import {
  initialValues,
  type ProgressOf,
  type ReportOf,
  type RequestOf,
  type ToolCall,
  type ToolValues,
} from '../../tools';
import type { JobKind } from './tabs';

export interface Job {
  kind: JobKind;
  /** null until the first report. */
  progress: JobProgress | null;
  canceling: boolean;
  /** Set while nothing was heard of it for long. */
  stalled?: Stalled | undefined;
}

/** A job that stands still. */
export interface Stalled {
  /** Since something was heard of it. */
  seconds: number;
  /** Whether the engine answers otherwise: then a step is slow, or waits for something that does not come. */
  answers: boolean;
}

export interface JobProgress {
  /** Phase as the worker names it. */
  phase: string;
  /** Tensor, file or model at work; empty where there is none. */
  item: string;
  /** Finished share of the phase, in [0, 1]. */
  share: number;
  counted: { done: number; total: number; unit: string } | null;
  bytes: { done: number; total: number } | null;
  rate: { perSecond: number; unit: 'bytes' | 'tokens' } | null;
  secondsLeft: number | null;
}

/** A tool at work, or the end of its last run. */
export interface ToolRun<R> {
  status: 'running' | 'done' | 'failed' | 'canceled';
  report: R | null;
  error: ErrorReport | null;
}

/** A tool that writes files: where they are. */
interface WritingRun<R> extends ToolRun<R> {
  saved: SavedOutput | null;
}

/** Progress of a job over tensors: by bytes, or by its own count. */
export function tensorProgress(progress: TensorProgress): JobProgress {
  const { phase, item, bytes, bytesDone, tensors, tensorsDone, bytesPerSecond, secondsLeft } = progress;
  const counted =
    progress.counted ?? (tensors > 0 ? { done: tensorsDone, total: tensors, unit: 'tensors' } : null);
  const part =
    bytes > 0 ? bytesDone / bytes : counted && counted.total > 0 ? counted.done / counted.total : 0;
  return {
    phase,
    item,
    share: Math.min(1, part),
    counted,
    bytes: bytes > 0 ? { done: bytesDone, total: bytes } : null,
    rate: bytes > 0 ? { perSecond: bytesPerSecond, unit: 'bytes' } : null,
    secondsLeft,
  };
}

/** How far a job that runs models is. */
export function runningProgress(
  { phase, done, total, rate, secondsLeft }: RunningProgress,
  item = '',
): JobProgress {
  const bytes = phase === 'downloading';
  return {
    phase,
    item,
    share: total > 0 ? Math.min(1, done / total) : 0,
    counted: bytes ? null : { done, total, unit: 'tokens' },
    bytes: bytes ? { done, total } : null,
    rate: rate > 0 ? { perSecond: rate, unit: bytes ? 'bytes' : 'tokens' } : null,
    secondsLeft,
  };
}

/** How far finding the best merge is. */
export function findProgress({ step, item, done, total, secondsLeft }: FindBestProgress): JobProgress {
  const unit = step === 'writing' ? 'tokens' : step === 'search' ? 'merges' : 'rows';
  const counted = { done, total, unit };
  const share = total > 0 ? Math.min(1, done / total) : 0;
  return { phase: step, item, share, counted, bytes: null, rate: null, secondsLeft };
}

/** Files that a tool has written: where they are, and under which name. */
export interface SavedOutput {
  kind: 'downloads' | 'folder';
  name: string;
  /** Name of the picked folder. */
  folder: string | null;
  files: SavedFile[];
}

export interface SavedFile {
  name: string;
  bytes?: number;
  hash?: string;
}

/** A name for files: letters, digits, dot, dash and underscore only, and no leading dot. */
export function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+/, '');
}

// State of the tools: their models, their forms, their jobs at work or last. Plain data.

/** A tool's job, or the last one of its kind. */
export interface ToolJob<K extends ToolCall> extends WritingRun<ReportOf<K>> {
  request: RequestOf<K>;
  /** Reports of finished items so far, in order. */
  finished: readonly ProgressOf<K>['finished'][number][];
}

export interface ToolsSlice {
  /** Models as the user chose them; null: by the recipe. */
  models: {
    model: string | null;
    lora: string | null;
    donor: string | null;
    base: string | null;
    finetuned: string | null;
  };
  values: ToolValues;
  jobs: { readonly [K in ToolCall]?: ToolJob<K> };
}

export const initialTools: ToolsSlice = {
  models: { model: null, lora: null, donor: null, base: null, finetuned: null },
  values: initialValues,
  jobs: {},
};

// State of pushing an output to the Hub. Plain, serializable data.

export interface PushSlice {
  /** Account of the token, once the hub has named it. */
  account: HubAccount | null;
  /** Name of the finished output; null takes the last merge's. */
  output: string | null;
  /** Repository as the user typed it; null while it is proposed. */
  repo: string | null;
  private: boolean;
  /** `asking`: files would be replaced, and the user has to agree. */
  status: 'idle' | 'looking' | 'asking' | 'pushing';
  target: PushTarget | null;
  report: PushReport | null;
  error: ErrorReport | null;
}

export const initialPush: PushSlice = {
  account: null,
  output: null,
  repo: null,
  private: true,
  status: 'idle',
  target: null,
  report: null,
  error: null,
};
