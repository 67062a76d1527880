/** The time that a job still needs: the one estimate of every job. Pure. */

/** Work that is left, in units of its own (bytes, tokens, …), and how many of them are done in a second. */
interface WorkLeft {
  left: number;
  perSecond: number;
}

/** Seconds until all of it is done; null while the pace of a part is not known. */
export function secondsLeft(...parts: readonly WorkLeft[]): number | null {
  let seconds = 0;
  for (const { left, perSecond } of parts) {
    if (left <= 0) continue;
    if (!(perSecond > 0)) return null;
    seconds += left / perSecond;
  }
  return seconds;
}

/**
 * Progress of work that counts tokens.
 * @param seconds since its part began, in which `own` of the `done` were made
 */
export function runningAt(done: number, total: number, seconds: number, own = done) {
  const rate = own / Math.max(1e-9, seconds);
  const phase = 'running' as const;
  return { phase, done, total, rate, secondsLeft: secondsLeft({ left: total - done, perSecond: rate }) };
}

/** An estimate may be so many times the one that is shown before that one is taken back. */
const WRONG = 1.5;

/**
 * Shows one estimate after the other so that the time left never counts up: one that is a little longer than the last shown is
 * held back, one that is far longer withdraws it (null) until estimates fall again.
 */
export function steadyTimeLeft(): (seconds: number | null) => number | null {
  let shown: number | null = null;
  let before = Number.POSITIVE_INFINITY;
  return (seconds) => {
    if (seconds === null) {
      shown = null;
      before = Number.POSITIVE_INFINITY;
      return null;
    }
    const falls = seconds < before;
    before = seconds;
    if (shown !== null) shown = seconds > WRONG * shown ? null : Math.min(shown, seconds);
    else if (falls) shown = seconds;
    return shown;
  };
}
