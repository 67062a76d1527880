/** Which elements of a tensor's sample are kept, and where those that are disagree in sign. */

import type { DeltaPreset } from '../method';

/** Which elements of a sample a selector keeps. */
export type SampleSelection =
  | SizeSelection
  /** With this chance, or with one by place in the sample; the draws are fixed, so that a slider does not flicker. */
  | { kind: 'random'; chance: number | Float64Array };

/** By size alone. */
export type SizeSelection =
  | { kind: 'all' }
  /**
   * from ≤ |τ| < below. Of those equal to `from` the first `ties` in the sample's order are kept, all of them by default;
   * of those equal to `below` all but the first `dropped`, none of them by default.
   */
  | { kind: 'band'; from: number; below: number; ties?: number; dropped?: number };

/** Share of one contributor in the sample. */
export interface SampleContribution {
  kept: KeptSample;
  /** Share of the tensor's elements that are kept. */
  share: number;
  weight: number;
}

/**
 * Which elements of a sample are kept, by sign: bit e % 32 of word ⌊e / 32⌋. Those that are 0 are in neither. A selection
 * writes over what the one before it kept: a step of a slider changes few of the bits.
 */
export interface KeptSample {
  positive: Uint32Array;
  negative: Uint32Array;
  /** Magnitudes kept; null where the selection is random, or nothing is kept yet. */
  band: Band | null;
  /** Another number for every selection. */
  version: number;
}

/** Patterns of magnitudes: from ≤ |τ| < below. */
interface Band {
  from: number;
  below: number;
  ties: number;
  dropped: number;
}

/** Nothing of a sample of so many elements. */
export function emptySample(size: number): KeptSample {
  const words = Math.ceil(size / 32);
  return { positive: new Uint32Array(words), negative: new Uint32Array(words), band: null, version: 0 };
}

/** Applies a selection by size. */
export function keepBySize(kept: KeptSample, values: Float32Array, selection: SizeSelection): void {
  const { positive, negative } = kept;
  const band = bandOf(selection);
  const { from, below } = band;
  const patterns = patternsOf(values);
  for (let word = 0; word < positive.length; word++) {
    let inBand = 0;
    let signs = 0;
    const start = word * 32;
    const bits = Math.min(32, values.length - start);
    for (let bit = 0; bit < bits; bit++) {
      const pattern = patterns[start + bit]!;
      const magnitude = pattern & 0x7fffffff;
      inBand |= (((from - 1 - magnitude) & (magnitude - below)) >>> 31) << bit;
      signs |= (pattern >>> 31) << bit;
    }
    positive[word] = inBand & ~signs;
    negative[word] = inBand & signs;
  }
  if (band.ties < Number.POSITIVE_INFINITY || band.dropped > 0) {
    const unlucky = unluckyIn(band);
    for (let e = 0; e < patterns.length; e++) if (unlucky(patterns[e]! & 0x7fffffff)) clear(kept, e);
  }
  kept.band = band;
  kept.version += 1;
}

/** Whether an element at an edge of the band, the next in order, is not kept after all. */
function unluckyIn({ from, below, ties, dropped }: Band): (magnitude: number) => boolean {
  let [atFrom, atBelow] = [0, 0];
  return (magnitude) =>
    (magnitude === from && atFrom++ >= ties) ||
    (dropped > 0 && magnitude === below - 1 && atBelow++ < dropped);
}

function clear({ positive, negative }: KeptSample, place: number): void {
  const bit = ~(1 << (place & 31));
  positive[place >> 5]! &= bit;
  negative[place >> 5]! &= bit;
}

/** Does what {@link keepBySize} does, from another band: only what changes is looked at. */
export function stepBySize(kept: KeptSample, then: Band, bins: SampleBins, selection: SizeSelection): void {
  const { positive, negative } = kept;
  const { places, patterns } = bins;
  const band = bandOf(selection);
  const { from, below } = band;
  const reselect = (low: number, high: number) => {
    const [first, end] = elementsBetween(bins, low, high);
    for (let at = first; at < end; at++) {
      const place = places[at]!;
      const pattern = patterns[place]!;
      const magnitude = pattern & 0x7fffffff;
      const bits = pattern < 0 ? negative : positive;
      if (magnitude >= from && magnitude < below) bits[place >> 5]! |= 1 << (place & 31);
      else bits[place >> 5]! &= ~(1 << (place & 31));
    }
  };
  reselect(Math.min(from, then.from), Math.max(from, then.from) + 1);
  reselect(Math.max(0, Math.min(below, then.below) - 1), Math.max(below, then.below));
  const unlucky = unluckyIn(band);
  for (const edge of [from, Math.max(0, below - 1)]) {
    const [first, end] = elementsBetween(bins, edge, edge + 1);
    for (let at = first; at < end; at++) if (unlucky(edge)) clear(kept, places[at]!);
    if (below - 1 === from) break;
  }
  kept.band = band;
  kept.version += 1;
}

/** Patterns from ≤ |τ| < below. Magnitudes are ordered as their patterns are; zeros are never kept. */
function bandOf(selection: SizeSelection): Band {
  if (selection.kind === 'all')
    return { from: 1, below: INFINITE, ties: Number.POSITIVE_INFINITY, dropped: 0 };
  return {
    from: Math.max(1, patternOf(selection.from)),
    below: patternOf(selection.below) + (selection.dropped === undefined ? 0 : 1),
    dropped: selection.dropped ?? 0,
    ties: selection.ties ?? Number.POSITIVE_INFINITY,
  };
}

/** The f32 patterns of a sample. */
export function patternsOf(values: Float32Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length);
}

/** The bits of ∞ as an f32. */
const INFINITE = 0x7f800000;
const F32 = new Float32Array(1);
const BITS = new Int32Array(F32.buffer);

/** The bits of the least f32 that is not below a magnitude. */
export function patternOf(magnitude: number): number {
  F32[0] = magnitude;
  return BITS[0]! + (F32[0]! < magnitude ? 1 : 0);
}

/**
 * Draws from a sample of contributor `model`.
 * @param all everything in it, by sign
 */
export function keepDrawn(
  kept: KeptSample,
  all: KeptSample,
  size: number,
  chance: number | Float64Array,
  model: number,
): void {
  const drawn = drawnPlaces(size, chance, model);
  for (let word = 0; word < drawn.length; word++) {
    kept.positive[word] = all.positive[word]! & drawn[word]!;
    kept.negative[word] = all.negative[word]! & drawn[word]!;
  }
  kept.band = null;
  kept.version += 1;
}

/** The places that are drawn, as bits. */
function drawnPlaces(size: number, chance: number | Float64Array, model: number): Uint32Array {
  const key = `${size} ${model} ${typeof chance === 'number' ? chance : ''}`;
  const known = typeof chance === 'number' ? drawnBefore.get(key) : undefined;
  if (known) return known;
  const bits = new Uint32Array(Math.ceil(size / 32));
  const draws = drawsOf(size, model);
  for (let e = 0; e < size; e++) {
    if (draws[e]! < (typeof chance === 'number' ? chance : chance[e]!)) bits[e >> 5]! |= 1 << (e & 31);
  }
  if (typeof chance === 'number') {
    if (drawnBefore.size >= MOST_DRAWN) drawnBefore.clear();
    drawnBefore.set(key, bits);
  }
  return bits;
}

/** Draws of one chance are the same in all samples of a size. */
const drawnBefore = new Map<string, Uint32Array>();
const MOST_DRAWN = 64;

/** Share of the sample's elements where kept changes disagree in sign. */
export function sampleConflict(
  size: number,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
): number {
  const ups: Uint32Array[] = [];
  const downs: Uint32Array[] = [];
  for (const { kept, weight } of contributions) {
    const sign = preset.ballots === 'unweighted' ? 1 : Math.sign(weight);
    if (sign === 0) continue;
    ups.push(sign > 0 ? kept.positive : kept.negative);
    downs.push(sign > 0 ? kept.negative : kept.positive);
  }
  let conflicts = 0;
  for (let word = 0; word * 32 < size; word++) {
    let up = 0;
    let down = 0;
    for (let i = 0; i < ups.length; i++) {
      up |= ups[i]![word]!;
      down |= downs[i]![word]!;
    }
    conflicts += ones(up & down);
  }
  return size > 0 ? conflicts / size : 0;
}

/** Bits that are 1 in both lists of words. */
export function sharedOnes(a: Uint32Array, b: Uint32Array): number {
  let sum = 0;
  for (let word = 0; word < a.length; word++) sum += ones(a[word]! & b[word]!);
  return sum;
}

/** Bits that are 1 in a list of words. */
export function onesOf(words: Uint32Array): number {
  let sum = 0;
  for (let word = 0; word < words.length; word++) sum += ones(words[word]!);
  return sum;
}

/** Bits that are 1. */
function ones(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Steps that share no common measure, one per model: draws of different models are independent. */
const STEPS = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53].map((p) => Math.sqrt(p) % 1);

/** Evenly spread numbers in [0, 1), the same every time (Kronecker sequences), for a sample of so many elements. */
function drawsOf(size: number, model: number): Float64Array {
  const step = STEPS[model % STEPS.length]!;
  const known = draws.get(step);
  if (known && known.length >= size) return known;
  const made = Float64Array.from({ length: size }, (_, e) => ((e + 1) * step) % 1);
  draws.set(step, made);
  return made;
}

const draws = new Map<number, Float64Array>();

/** Elements of a sample in one bin of |τ|, each standing for `weight` elements of its tensor. */
interface BinMember {
  bins: SampleBins;
  /** How many of the tensor's elements lie in the bin. */
  count: number;
}

/**
 * Where a count of the largest ends inside a bin of |τ|, by the samples of one tensor or of several.
 * @param low the bin's lower edge
 * @param count how many of the bin's elements are among the largest
 * @returns the threshold, and the share of the elements equal to it that is among them; undefined where no sample has any
 */
export function thresholdInBin(
  members: readonly BinMember[],
  low: number,
  high: number,
  count: number,
): { threshold: number; share: number } | undefined {
  const [from, below] = [patternOf(low), patternOf(high)];
  const inside = members.flatMap(({ bins, count: all }) => {
    const [first, end] = elementsBetween(bins, from, below);
    return end > first ? [{ bins, weight: all / (end - first) }] : [];
  });
  if (inside.length === 0) return undefined;
  /** Elements of the tensors from a pattern up. */
  const upFrom = (pattern: number) => {
    let sum = 0;
    for (const { bins, weight } of inside) {
      const [first, end] = elementsBetween(bins, pattern, below);
      sum += weight * (end - first);
    }
    return sum;
  };
  // the largest pattern from which up there are as many; where all of them are too few, their smallest
  const enough = Math.min(count, upFrom(from));
  let [holds, fails] = [from, below];
  while (fails - holds > 1) {
    const middle = Math.floor((holds + fails) / 2);
    if (upFrom(middle) >= enough) holds = middle;
    else fails = middle;
  }
  const over = upFrom(holds + 1);
  const equal = upFrom(holds) - over;
  BITS[0] = holds;
  return { threshold: F32[0]!, share: equal > 0 ? Math.min(1, (count - over) / equal) : 1 };
}

/** How many elements of a sample are as large as a magnitude exactly. */
export function tiesOf(bins: SampleBins, magnitude: number): number {
  const pattern = patternOf(magnitude);
  const [first, end] = elementsBetween(bins, pattern, pattern + 1);
  return end - first;
}

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
