import type { BackendSeconds } from '../backend/backend';
import type {
  CalibrationPhaseName,
  PhaseSeconds,
  Progress,
  TensorProgress,
  WorkSeconds,
} from '../reports/job';
import { secondsLeft } from '../reports/time-left';

/** Messages go out at most this often; finished tensors wait for the next one. */
const INTERVAL_MS = 100;
/** The rate is taken over this much of the recent past, so that ETA follows a change of speed. */
const WINDOW_MS = 5000;

/** Units of the phases that count other things than bytes. */
const UNITS: Readonly<Record<string, string>> = {
  writing: 'tokens',
  calibrating: 'layers of models',
  searching: 'values of λ',
} satisfies Record<CalibrationPhaseName, string>;

/** Progress of any job, with its reports of finished tensors. */
type AnyProgress = TensorProgress & { finished: unknown[] };

/** Of engines; threads read and write too. */
type Seconds = Readonly<BackendSeconds & { read?: number; write?: number }>;
const NO_SECONDS: Seconds = { upload: 0, compute: 0, readback: 0 };

/** Collects the progress of a job and reports it a few times a second. */
export interface ProgressMeter<P extends AnyProgress = Progress> {
  /**
   * Begins a phase with its total of bytes and tensors.
   * @param done what an earlier attempt has done of it
   */
  begin(
    phase: P['phase'],
    bytes: number,
    tensors?: number,
    done?: { bytes: number; reports: P['finished'] },
  ): void;
  /** So many bytes more, or of what the phase counts in their place ({@link UNITS}). */
  advance(bytes: number, item: string): void;
  /** One more tensor is done; `reports` go out with the next message. */
  finishTensor(...reports: P['finished']): void;
  /** Adds seconds to a kind of work the job times itself. */
  spend(work: 'read' | 'write', seconds: number): void;
  /** Does it and adds the seconds it took, where it did not fail. */
  timed<T>(work: 'read' | 'write', act: () => Promise<T>): Promise<T>;
  stages(): WorkSeconds;
  /** Shows a message to the user at once. */
  tell(note: string): void;
  /** Sends what is still waiting. */
  flush(): void;
}

/**
 * A meter that sends to `send`; compute stages are read off the engine, once there is one.
 * @param phases of a job that has several: the time left is that of all
 */
export function progressMeter<P extends AnyProgress = Progress>(
  send: (progress: P) => void,
  engine: () => { readonly seconds: Seconds } | undefined,
  now: () => number = () => performance.now(),
  phases?: Phases,
): ProgressMeter<P> {
  const own = { read: 0, write: 0 };
  let state = {
    phase: 'planning' as P['phase'],
    item: '',
    bytesDone: 0,
    bytes: 0,
    tensorsDone: 0,
    tensors: 0,
  };
  let finished: unknown[] = [];
  let samples: { at: number; bytes: number }[] = [];
  let sentAt = Number.NEGATIVE_INFINITY;

  const stages = (): WorkSeconds => {
    const { upload, compute, readback, read, write }: Seconds = engine()?.seconds ?? NO_SECONDS;
    return { read: own.read + (read ?? 0), upload, compute, readback, write: own.write + (write ?? 0) };
  };
  const flush = (note?: string) => {
    const at = now();
    samples.push({ at, bytes: state.bytesDone });
    samples = samples.filter((s) => at - s.at <= WINDOW_MS);
    const first = samples[0]!;
    const seconds = (at - first.at) / 1000;
    const rate = seconds > 0 ? (state.bytesDone - first.bytes) / seconds : 0;
    sentAt = at;
    const unit = UNITS[state.phase];
    // how many there are may be a guess
    const counted = { done: Math.round(state.bytesDone), total: Math.max(state.bytes, state.bytesDone) };
    send({
      ...state,
      ...(unit === undefined
        ? { bytesPerSecond: rate }
        : { bytes: 0, bytesDone: 0, bytesPerSecond: 0, counted: { ...counted, unit } }),
      ...(phases
        ? { ...phases.at(state.bytesDone, rate), phases: phases.seconds() }
        : { secondsLeft: secondsLeft({ left: state.bytes - state.bytesDone, perSecond: rate }) }),
      stages: stages(),
      finished,
      ...(note === undefined ? {} : { note }),
    } as AnyProgress as P);
    finished = [];
  };
  const tick = () => {
    if (now() - sentAt >= INTERVAL_MS) flush();
  };
  return {
    begin(phase, bytes, tensors = 0, done = { bytes: 0, reports: [] }) {
      const { bytes: bytesDone, reports } = done;
      state = { phase, item: '', bytesDone, bytes, tensorsDone: reports.length, tensors };
      // a resumed merge may have more reports than a call takes arguments
      finished = [...finished, ...reports];
      samples = [];
      phases?.begin(phase as Progress['phase'], bytes);
      flush();
    },
    advance(bytes, item) {
      state.bytesDone += bytes;
      state.item = item;
      tick();
    },
    finishTensor(...reports) {
      state.tensorsDone++;
      finished.push(...reports);
      tick();
    },
    spend(work, seconds) {
      own[work] += seconds;
    },
    async timed(work, act) {
      const started = performance.now();
      const result = await act();
      own[work] += (performance.now() - started) / 1000;
      return result;
    },
    stages,
    tell: (note) => flush(note),
    flush: () => flush(),
  };
}

// The phases of a job, one after the other: the time each took, and the time that all still need.

type Phase = Progress['phase'];

export interface PlannedPhase {
  phase: Phase;
  /** In the units it counts: bytes, tokens, layers of models, values of λ. */
  work: number;
  /** Weight of a unit relative to units of other jobs: the parameters of the models that run. Default 1. */
  weight?: number;
}

export interface Phases {
  /** The next phase of this kind begins; those planned before it are left out. */
  begin(phase: Phase, work: number): void;
  /** Begins work outside of any phase: opening before the first and between two, finishing after the last. */
  rest(as: 'opening' | 'finishing'): void;
  /** Where the job is, `done` units into the phase at this pace; 0 where it is not known yet. */
  at(
    done: number,
    perSecond: number,
  ): { phaseNumber: { at: number; of: number }; secondsLeft: number | null };
  /** Seconds of each so far. They add up to the time since the job began. */
  seconds(): PhaseSeconds;
}

/**
 * Weighted units that a phase does in a second until one was seen here, which is taken from then on: orders of magnitude
 * of a laptop. `docs/studio.md` says how close the sum comes.
 */
const PACE: Partial<Record<Phase, number>> = {
  downloading: 8e6,
  hashing: 3e8,
  checking: 3e8,
  writing: 5e8,
  calibrating: 4e7,
  searching: 5e6,
  measuring: 5e7,
  merging: 5e7,
};

/** Paces that were seen since this worker started. */
const seen = new Map<Phase, number>();

/** Follows a job through its planned phases. */
export function trackPhases(
  planned: readonly PlannedPhase[],
  now: () => number = () => performance.now(),
): Phases {
  const phases = [...planned];
  const spent: PhaseSeconds = {};
  let index = -1;
  let current: keyof PhaseSeconds = 'opening';
  let since = now();
  const turnTo = (next: keyof PhaseSeconds) => {
    const time = now();
    spent[current] = (spent[current] ?? 0) + (time - since) / 1000;
    current = next;
    since = time;
  };
  const paceOf = ({ phase, weight = 1 }: PlannedPhase) => (seen.get(phase) ?? PACE[phase] ?? 0) / weight;
  return {
    begin(phase, work) {
      turnTo(phase);
      const next = phases.findIndex((p, i) => i > index && p.phase === phase);
      if (next < 0) phases.splice(++index, 0, { phase, work });
      else {
        index = next;
        phases[index] = { ...phases[index], phase, work };
      }
    },
    rest: turnTo,
    at(done, perSecond) {
      const phase = phases[index];
      if (!phase) return { phaseNumber: { at: 1, of: Math.max(1, phases.length) }, secondsLeft: null };
      if (perSecond > 0) seen.set(phase.phase, perSecond * (phase.weight ?? 1));
      const later = phases.slice(index + 1).map((p) => ({ left: p.work, perSecond: paceOf(p) }));
      return {
        phaseNumber: { at: index + 1, of: phases.length },
        secondsLeft: secondsLeft(
          { left: phase.work - done, perSecond: perSecond || paceOf(phase) },
          ...later,
        ),
      };
    },
    seconds() {
      turnTo(current);
      return { ...spent };
    },
  };
}
