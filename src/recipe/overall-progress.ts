/** One progress over steps of which several may be under way at once. */
import type { Progress } from '../reports/job';

/** A phase of a step, and its work in any unit that all have in common. */
export interface WorkStep {
  at: number;
  phase: Progress['phase'];
  work: number;
}

/**
 * The time left for all steps, by the work done so far: what was found already takes no time and does not count. The
 * earliest step that is under way is the one that is named.
 */
export function overallProgress(steps: readonly WorkStep[], send: (progress: Progress) => void) {
  const begun = performance.now();
  const total = steps.reduce((sum, { work }) => sum + work, 0);
  const of = new Set(steps.map(({ at }) => at)).size;
  const ended = new Set<number>();
  /** By step, phase and thread: share done, share when it was first reported. */
  const shares = new Map<
    string,
    { at: number; phase: string; share: number; first: number; threads: number }
  >();
  const underWay = new Map<number, { name: string; progress: Progress }>();
  const spent: Record<string, number> = {};
  let spentUntil = begun;
  const spend = (now: number) => {
    const each = (now - spentUntil) / 1000 / underWay.size;
    for (const { progress } of underWay.values()) spent[progress.phase] = (spent[progress.phase] ?? 0) + each;
    spentUntil = now;
  };
  const sumOf = (part: (share: { share: number; first: number }) => number) =>
    steps.reduce((sum, { at, phase, work }) => {
      const mine = [...shares.values()].filter((s) => s.at === at && s.phase === phase);
      return sum + mine.reduce((all, s) => all + (part(s) * work) / s.threads, 0);
    }, 0);
  return {
    /** Takes the progress of a step. @param thread index among the `threads` that share the step */
    report(at: number, name: string, progress: Progress, thread = 0, threads = 1): void {
      const now = performance.now();
      const { phase, counted, bytes, bytesDone } = progress;
      spend(now);
      underWay.set(at, { name, progress });
      const part =
        counted && counted.total > 0 ? counted.done / counted.total : bytes > 0 ? bytesDone / bytes : 0;
      const share = Math.min(1, part);
      const key = `${at} ${phase} ${thread}`;
      shares.set(key, { at, phase, share, first: shares.get(key)?.first ?? share, threads });
      const credited = sumOf((s) => s.share - s.first);
      const passed = steps.reduce((sum, step) => sum + (ended.has(step.at) ? step.work : 0), 0);
      const running = steps.filter((step) => !ended.has(step.at));
      const done = passed + running.reduce((sum, step) => sum + step.work * shareOf(step), 0);
      const rate = credited / ((now - begun) / 1000);
      const first = [...underWay.keys()].filter((step) => !ended.has(step)).sort((a, b) => a - b)[0] ?? at;
      const shown = underWay.get(first)!;
      // phases within a step are not reported: there is one count of steps, and one time left
      const { phaseNumber: _, ...within } = shown.progress;
      send({
        ...within,
        secondsLeft: credited > 0 ? (total - done) / rate : null,
        step: { name: shown.name, at: first, of, share: total > 0 ? Math.min(1, done / total) : 0 },
      });
    },
    /** The step has ended. */
    end(at: number): void {
      spend(performance.now());
      underWay.delete(at);
      ended.add(at);
    },
    /** Seconds spent in each phase: of the wall clock, which phases that run at once share evenly. */
    seconds: () => spent,
  };

  function shareOf({ at, phase }: WorkStep): number {
    const mine = [...shares.values()].filter((s) => s.at === at && s.phase === phase);
    // a later phase of the step is reported: this one is over
    const order = steps.filter((s) => s.at === at).map((s) => s.phase as string);
    const over = [...shares.values()].some(
      (s) => s.at === at && order.indexOf(s.phase) > order.indexOf(phase),
    );
    return over ? 1 : mine.reduce((sum, s) => sum + s.share / s.threads, 0);
  }
}
