/** A sample by magnitude, so that a step of a slider looks only at the elements between its old threshold and its new one. */

/** Elements of a sample in bins of |τ|, an eighth of an octave each, from the smallest up. */
export interface SampleBins {
  /** Bin of the smallest: the upper bits of its f32 pattern. */
  first: number;
  /** Where bin `first + b` begins among the elements, and after the last one where it ends. */
  starts: Uint32Array;
  /** Every element by its f32 pattern, with its sign, and its place in the sample: two words each. */
  elements: Int32Array;
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
  const elements = new Int32Array(2 * patterns.length);
  const next = starts.slice();
  for (let e = 0; e < patterns.length; e++) {
    const at = next[binOf(patterns[e]!) - first]!++;
    elements[2 * at] = patterns[e]!;
    elements[2 * at + 1] = e;
  }
  return { first, starts, elements };
}

/** Which of the elements lie in the bins of from ≤ |τ| < below, as patterns: from the first to before the second. */
export function elementsBetween(
  { first, starts }: SampleBins,
  from: number,
  below: number,
): [number, number] {
  const begin = Math.max(0, (from >>> BIN_SHIFT) - first);
  const end = Math.min(starts.length - 1, ((below - 1) >>> BIN_SHIFT) - first + 1);
  return from < below && begin < end ? [starts[begin]!, starts[end]!] : [0, 0];
}

function binOf(pattern: number): number {
  return (pattern & 0x7fffffff) >>> BIN_SHIFT;
}
