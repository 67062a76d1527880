/** A sample by magnitude, so that a step of a slider looks only at the elements between its old threshold and its new one. */

/** Elements of a sample in bins of |τ|, an eighth of an octave each, from the smallest up. */
export interface SampleBins {
  /** Bin of the smallest: the upper bits of its f32 pattern. */
  first: number;
  /** Where bin `first + b` begins among the places, and after the last one where it ends. */
  starts: Uint32Array;
  /** Places in the sample, bin by bin; inside a bin that was looked at by magnitude, equal ones in their order. */
  places: Uint32Array;
  /** f32 patterns of the sample, with their signs, by place. */
  patterns: Int32Array;
  /** 1 where the elements of a bin are in order: a slider looks at few of them. */
  ordered: Uint8Array;
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
  return { first, starts, places, patterns, ordered: new Uint8Array(bins) };
}

/**
 * Which of the places have from ≤ |τ| < below, as patterns: from the first to before the second, the smallest first, equal
 * ones in the order of the sample.
 */
export function elementsBetween(bins: SampleBins, from: number, below: number): [number, number] {
  if (from >= below) return [0, 0];
  const first = firstFrom(bins, from);
  return [first, Math.max(first, firstFrom(bins, below))];
}

/** The first of the places of a magnitude, or more. */
function firstFrom(bins: SampleBins, magnitude: number): number {
  const { first, starts, places, patterns } = bins;
  const bin = (magnitude >>> BIN_SHIFT) - first;
  if (bin < 0) return 0;
  if (bin >= starts.length - 1) return places.length;
  order(bins, bin);
  let low = starts[bin]!;
  let high = starts[bin + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((patterns[places[middle]!]! & 0x7fffffff) >= magnitude) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** More than any place in a sample. */
const PLACES = 2 ** 21;

/** Sorts a bin by magnitude and place, where that was not done. */
function order({ starts, places, patterns, ordered }: SampleBins, bin: number): void {
  if (ordered[bin]) return;
  ordered[bin] = 1;
  const own = places.subarray(starts[bin]!, starts[bin + 1]!);
  const keys = Float64Array.from(own, (place) => (patterns[place]! & 0x7fffffff) * PLACES + place).sort();
  for (let i = 0; i < own.length; i++) own[i] = keys[i]! % PLACES;
}

function binOf(pattern: number): number {
  return (pattern & 0x7fffffff) >>> BIN_SHIFT;
}
