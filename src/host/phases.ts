/** The phases of a job, one after the other: the time each took, and the time that all still need. */
import type { PhaseSeconds, Progress } from '../reports/job';
import { secondsLeft } from '../reports/time-left';

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
