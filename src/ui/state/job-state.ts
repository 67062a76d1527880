/** The one job of the worker, and its progress. Plain, serializable data. */
import type { ErrorReport } from '../../errors';
import type { RunningProgress } from '../../reports/evaluate';
import type { TensorProgress } from '../../reports/job';
import type { SavedOutput } from './saved-state';
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
export interface WritingRun<R> extends ToolRun<R> {
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
