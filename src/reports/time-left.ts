/** The time that a job still needs: the one estimate of every job. Pure. */

/** Work that is left, in units of its own (bytes, tokens, …), and how many of them are done in a second. */
export interface WorkLeft {
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
