/** A sample by magnitude, so that a step of a slider looks only at the elements between its old threshold and its new one. */

/** Elements of a sample in bins of |τ|, an eighth of an octave each, from the smallest up. */
export interface SampleBins {
  /** Bin of the smallest: the upper bits of its f32 pattern. */
  first: number;
  /** Where bin `first + b` begins in `places`, and after the last one where it ends. */
  starts: Uint32Array;
  places: Uint32Array;
}

const BIN_SHIFT = 20;

/** @param patterns f32 patterns of a sample, with their signs */
export function sampleBins(patterns: Int32Array): SampleBins {
  let [least, most] = [0x7fffffff, 0];
  for (let e = 0; e < patterns.length; e++) {
    const magnitude = patterns[e]! & 0x7fffffff;
    if (magnitude < least) least = magnitude;
    if (magnitude > most) most = magnitude;
  }
  const first = least >>> BIN_SHIFT;
  const bins = patterns.length > 0 ? (most >>> BIN_SHIFT) - first + 1 : 0;
  const starts = new Uint32Array(bins + 1);
  for (let e = 0; e < patterns.length; e++) starts[binOf(patterns[e]!) - first + 1]! += 1;
  for (let b = 0; b < bins; b++) starts[b + 1]! += starts[b]!;
  const places = new Uint32Array(patterns.length);
  const next = starts.slice();
  for (let e = 0; e < patterns.length; e++) places[next[binOf(patterns[e]!) - first]!++] = e;
  return { first, starts, places };
}

/** Visits every element of from ≤ |τ| < below, as patterns, and others of their bins. */
export function visitBand(
  { first, starts, places }: SampleBins,
  from: number,
  below: number,
  visit: (place: number) => void,
): void {
  if (from >= below) return;
  const bins = starts.length - 1;
  const begin = Math.max(0, (from >>> BIN_SHIFT) - first);
  const end = Math.min(bins, ((below - 1) >>> BIN_SHIFT) - first + 1);
  if (begin >= end) return;
  for (let at = starts[begin]!; at < starts[end]!; at++) visit(places[at]!);
}

function binOf(pattern: number): number {
  return (pattern & 0x7fffffff) >>> BIN_SHIFT;
}
