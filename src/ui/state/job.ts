/** The one job of the worker, from its beginning to its end, and why nothing else can begin meanwhile. */

import { type ErrorReport, errorReport } from '../../errors';
import { formatBytes } from '../../formats/quantity';
import { steadyTimeLeft } from '../../reports/time-left';
import type { JobProgress, Stalled, ToolRun } from './job-state';
import { type EngineSlice, editSlice, noticed, notify, type Studio, type StudioState } from './studio';
import { JOB_WORDS, type JobKind, type Tab } from './tabs';

export interface Busy {
  why: string;
  /** `wait` resolves without the user, `fix` needs the user. */
  tone: 'wait' | 'fix';
  /** Where the job shows. */
  tab?: Tab;
}

/** Why no job can begin now, or null: the engine has one job, in this tab or another. */
export function whyBusy({
  engine,
  job,
  elsewhere,
}: Pick<StudioState, 'engine' | 'job' | 'elsewhere'>): Busy | null {
  if (engine.status === 'failed') return { why: whyNoEngine(engine), tone: 'fix' };
  if (engine.status === 'starting') return { why: 'Starting the engine…', tone: 'wait' };
  if (job) {
    const { busy, tab } = JOB_WORDS[job.kind];
    return { why: job.canceling ? 'Canceling…' : busy, tone: 'wait', tab };
  }
  return elsewhere ? { why: 'A merge is running in another tab.', tone: 'wait' } : null;
}

/** Why no tool beside the merge can start now, or null. */
export function whyNoTool(state: StudioState): string | null {
  const what = state.opening.at(-1);
  return whyBusy(state)?.why ?? (what === undefined ? null : `Opening ${what}…`);
}

/** Whether this job is at work. */
export function isAtWork({ job }: Pick<StudioState, 'job'>, kind: JobKind): boolean {
  return job?.kind === kind;
}

/** Silence of a job after which the page shows it. */
const QUIET_MS = 30_000;
/** How often the engine is asked whether it is there. */
const PING_MS = 5000;
/** An engine that has not stopped a job by then is ended with it. */
const CANCEL_MS = 1000;

/** Makes this the studio's job, holds a wake lock and watches it; returns the function that ends it. */
export function beginJob(studio: Studio, kind: JobKind): () => void {
  studio.transient.timeLeft = steadyTimeLeft();
  studio.store.setState({ job: { kind, progress: null, canceling: false } });
  const release = stayAwake();
  const endWatch = watchJob(studio);
  return () => {
    studio.store.setState({ job: null });
    clearTimeout(studio.transient.cancelTimer);
    endWatch();
    release();
  };
}

/** Marks the job as stalled without a report. A wait for a hub is shown separately. */
function watchJob(studio: Studio): () => void {
  let answered = Date.now();
  studio.transient.heardAt = answered;
  const timer = setInterval(() => {
    studio.worker.ping().then(
      () => {
        answered = Date.now();
      },
      // an engine that died ends the job too
      () => undefined,
    );
    const { hubWaits } = studio.store.getState();
    if (hubWaits.length > 0) studio.transient.heardAt = Date.now();
    const quiet = Date.now() - studio.transient.heardAt;
    const stalled: Stalled | undefined =
      quiet < QUIET_MS
        ? undefined
        : { seconds: Math.round(quiet / 1000), answers: Date.now() - answered < 2 * PING_MS };
    studio.store.setState(({ job }) => (job && (stalled || job.stalled) ? { job: { ...job, stalled } } : {}));
  }, PING_MS);
  return () => clearInterval(timer);
}

/** Takes a progress report of a job; the remaining time on display never counts up. */
export function reportProgress(studio: Studio, kind: JobKind, reported: JobProgress): void {
  studio.transient.heardAt = Date.now();
  if (reported.phase === 'downloading' && reported.bytes) void askToKeep(studio, reported.bytes.total);
  const progress = { ...reported, secondsLeft: studio.transient.timeLeft(reported.secondsLeft) };
  studio.store.setState(({ job }) =>
    job?.kind === kind ? { job: { ...job, progress, stalled: undefined } } : {},
  );
}

/** Bytes of a download that are worth a question: some browsers ask the user. */
const LARGE_BYTES = 200e6;

/** Asks the browser, at the first large download of a session, and says what it answers. Never rejects. */
export async function askToKeep(studio: Studio, bytes: number): Promise<void> {
  const { transient } = studio;
  const { storage } = navigator;
  if (bytes < LARGE_BYTES || transient.askedToKeep || !storage?.persist) return;
  transient.askedToKeep = true;
  // where it gives no answer it promises nothing
  const refused = () => false;
  if (await storage.persisted().catch(refused)) return;
  const isKept = await storage.persist().catch(refused);
  const [words, hint] = isKept
    ? ['The browser keeps it until you delete it', 'It is listed under Storage at the top.']
    : [
        'The browser may delete it when the disk runs short',
        'Save what you merge; what was deleted is downloaded again.',
      ];
  notify(studio, 'note', `${formatBytes(bytes)} are downloaded. ${words}.`, hint, 'kept storage');
}

/** Asks the engine to stop; the job ends once it has cleaned up, or with the engine where that does not answer. */
export async function cancelJob(studio: Studio): Promise<void> {
  const { job } = studio.store.getState();
  if (!job || job.canceling) return;
  studio.store.setState({ job: { ...job, canceling: true, stalled: undefined } });
  studio.transient.cancelTimer = setTimeout(() => void restartEngine(studio, 'cancel'), CANCEL_MS);
  await noticed(studio, () => studio.worker.cancel());
}

/** Repeats the current step of the job in a new engine; finished steps stay. Never rejects. */
export async function restartStep(studio: Studio): Promise<void> {
  studio.transient.heardAt = Date.now();
  studio.store.setState(({ job }) => (job ? { job: { ...job, stalled: undefined } } : {}));
  await restartEngine(studio, 'again');
}

async function restartEngine(studio: Studio, jobs: 'again' | 'cancel'): Promise<void> {
  await noticed(studio, async () => {
    const { signedOut } = await studio.worker.restart(jobs);
    if (!signedOut) return;
    editSlice(studio, 'hub', { hasToken: false, signedInAs: null });
    notify(
      studio,
      'note',
      'You are signed out of the hub: the engine was started again.',
      'Sign in again where a model needs it.',
    );
  });
}

type JobOutcome<T> = { value: T } | { error: ErrorReport } | { canceled: true };

/** End of a tool's run, from the outcome of its job. */
export function ended<R>(outcome: JobOutcome<R>): Pick<ToolRun<R>, 'status'> & Partial<ToolRun<R>> {
  if ('value' in outcome) return { status: 'done', report: outcome.value };
  return 'error' in outcome ? { status: 'failed', error: outcome.error } : { status: 'canceled' };
}

/**
 * Runs a job of a tool. Never rejects.
 * @param read converts a report of the worker to progress
 */
export async function runTool<P, R>(
  studio: Studio,
  kind: JobKind,
  work: (onProgress: (progress: P) => void) => Promise<R>,
  read: (progress: P) => JobProgress,
  follow: (progress: P) => void = () => {},
): Promise<JobOutcome<R>> {
  const end = beginJob(studio, kind);
  try {
    const value = await work((progress) => {
      reportProgress(studio, kind, read(progress));
      follow(progress);
    });
    return { value };
  } catch (thrown) {
    const error = errorReport(thrown);
    return error.code === 'Canceled' ? { canceled: true } : { error };
  } finally {
    end();
  }
}

/**
 * Keeps the screen on and asks before the tab closes, for as long as a merge runs. Browsers without wake locks, and
 * refusals (low battery), only mean that the screen may go dark: the merge goes on.
 */
function stayAwake(): () => void {
  const ask = (event: BeforeUnloadEvent) => event.preventDefault();
  addEventListener('beforeunload', ask);
  let released = false;
  let lock: WakeLockSentinel | undefined;
  navigator.wakeLock?.request('screen').then(
    (held) => {
      if (released) void held.release();
      else lock = held;
    },
    () => undefined,
  );
  return () => {
    released = true;
    removeEventListener('beforeunload', ask);
    void lock?.release();
  };
}

// The engine in a few words, with its limits. Pure.

interface EngineSummary {
  tone: 'ok' | 'warn' | 'bad' | 'wait';
  /** `WebGPU` or `CPU`. */
  kind: string;
  /** `Apple M3 · 4.29 GB buffers`. */
  detail: string;
  /** Missing or slow features, in sentences. */
  notes: string[];
}

/** Words for a failed engine: it never ran, or it ran until it stopped. */
function whyNoEngine({ info }: EngineSlice): string {
  return info ? 'The engine stopped.' : 'The engine did not start.';
}

export function engineSummary({ status, info, choice }: EngineSlice): EngineSummary {
  if (status === 'failed') {
    return { tone: 'bad', kind: info ? 'Stopped' : 'No engine', detail: '', notes: [] };
  }
  if (!info) return { tone: 'wait', kind: 'Starting', detail: '', notes: [] };
  const { webgpu, cpu, storage } = info;
  const kind = choice === 'auto' ? info.auto : choice;
  const notes: string[] = [];
  if (kind === 'cpu' && choice === 'auto') {
    const why = webgpu.available
      ? `The GPU adapter (${webgpu.adapter}) is a software one`
      : (webgpu.why ?? 'This browser has no WebGPU').replace(/\.$/, '');
    notes.push(`${why}: merges run on the CPU engine. Same result, more time.`);
  }
  if (kind === 'webgpu' && webgpu.isFallback) {
    notes.push(
      `${webgpu.adapter} is a software adapter: WebGPU works here, but on the processor and slowly.`,
    );
  }
  if (!storage.available) {
    const why = (storage.why ?? 'This browser offers no private storage').replace(/\.$/, '');
    notes.push(
      `${why}: models from the Hub and saving as downloads do not work. The sample, local models and saving to a folder do.`,
    );
  }
  const detail =
    kind === 'webgpu' ? `${webgpu.adapter} · ${formatBytes(webgpu.maxBufferBytes)} buffers` : cpu.adapter;
  return {
    tone: notes.length > 0 ? 'warn' : 'ok',
    kind: kind === 'webgpu' ? 'WebGPU' : 'CPU',
    detail,
    notes,
  };
}
