/** Which elements of a tensor's sample are kept, and where those that are disagree in sign. */
import type { DeltaPreset } from '../method';
import { elementsBetween, type SampleBins } from './sample-bins';

/** Which elements of a sample a selector keeps. */
export type SampleSelection =
  | SizeSelection
  /** With this chance, by place in the sample; the draws are fixed, so that a slider does not flicker. */
  | { kind: 'random'; probability(place: number): number };

/** By size alone. */
export type SizeSelection =
  | { kind: 'all' }
  /**
   * from ≤ |τ| < below. Of those equal to `from` the first `ties` in the sample's order are kept, all of them by default;
   * of those equal to `below` all but the first `dropped`, none of them by default.
   */
  | { kind: 'band'; from: number; below: number; ties?: number; dropped?: number };

/** What one contributor brings to the sample. */
export interface SampleContribution {
  kept: KeptSample;
  /** Share of the tensor's elements that are kept. */
  share: number;
  weight: number;
}

/** Which elements of a sample are kept, by sign: bit e % 32 of word ⌊e / 32⌋. Those that are 0 are in neither. */
export interface KeptSample {
  positive: Uint32Array;
  negative: Uint32Array;
}

/** Patterns of magnitudes: from ≤ |τ| < below. */
interface Band {
  from: number;
  below: number;
  ties: number;
  dropped: number;
}

/** What a selection by size keeps: the next step begins from it. */
export interface SizedSample extends KeptSample {
  band: Band;
}

/** Applies a selection to the sample of contributor `model`. */
export function keptSample(
  values: Float32Array,
  selection: SampleSelection,
  model: number,
): KeptSample | SizedSample {
  if (selection.kind === 'random') return drawnSample(values, selection.probability, model);
  const words = Math.ceil(values.length / 32);
  const positive = new Uint32Array(words);
  const negative = new Uint32Array(words);
  const band = bandOf(selection);
  const { from, below } = band;
  const patterns = patternsOf(values);
  for (let word = 0; word < words; word++) {
    let kept = 0;
    let signs = 0;
    const start = word * 32;
    const bits = Math.min(32, values.length - start);
    for (let bit = 0; bit < bits; bit++) {
      const pattern = patterns[start + bit]!;
      const magnitude = pattern & 0x7fffffff;
      kept |= (((from - 1 - magnitude) & (magnitude - below)) >>> 31) << bit;
      signs |= (pattern >>> 31) << bit;
    }
    positive[word] = kept & ~signs;
    negative[word] = kept & signs;
  }
  const kept = { positive, negative, band };
  if (band.ties < Number.POSITIVE_INFINITY || band.dropped > 0) {
    const unlucky = unluckyIn(band);
    for (let e = 0; e < patterns.length; e++) if (unlucky(patterns[e]! & 0x7fffffff)) clear(kept, e);
  }
  return kept;
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

/** What {@link keptSample} says of a selection by size, from what it said of another one: only what changes is looked at. */
export function steppedSample(bins: SampleBins, selection: SizeSelection, before: SizedSample): SizedSample {
  const band = bandOf(selection);
  const { from, below } = band;
  const then = before.band;
  const positive = before.positive.slice();
  const negative = before.negative.slice();
  const judge = (low: number, high: number) => {
    const { elements } = bins;
    const [first, end] = elementsBetween(bins, low, high);
    for (let at = first; at < end; at++) {
      const pattern = elements[2 * at]!;
      const place = elements[2 * at + 1]!;
      const magnitude = pattern & 0x7fffffff;
      const bits = pattern < 0 ? negative : positive;
      if (magnitude >= from && magnitude < below) bits[place >> 5]! |= 1 << (place & 31);
      else bits[place >> 5]! &= ~(1 << (place & 31));
    }
  };
  judge(Math.min(from, then.from), Math.max(from, then.from) + 1);
  judge(Math.max(0, Math.min(below, then.below) - 1), Math.max(below, then.below));
  const kept = { positive, negative, band };
  const unlucky = unluckyIn(band);
  for (const edge of [from, Math.max(0, below - 1)]) {
    const [first, end] = elementsBetween(bins, edge, edge + 1);
    // elements of a bin are in the order of their places
    for (let at = first; at < end; at++) {
      const magnitude = bins.elements[2 * at]! & 0x7fffffff;
      if (magnitude === edge && unlucky(magnitude)) clear(kept, bins.elements[2 * at + 1]!);
    }
    if (below - 1 === from) break;
  }
  return kept;
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

function drawnSample(
  values: Float32Array,
  probability: (place: number) => number,
  model: number,
): KeptSample {
  const words = Math.ceil(values.length / 32);
  const positive = new Uint32Array(words);
  const negative = new Uint32Array(words);
  for (let e = 0; e < values.length; e++) {
    const value = values[e]!;
    if (!Number.isFinite(value) || draw(e, model) >= probability(e)) continue;
    if (value > 0) positive[e >> 5]! |= 1 << (e & 31);
    else if (value < 0) negative[e >> 5]! |= 1 << (e & 31);
  }
  return { positive, negative };
}

/** Share of the sample's elements where kept changes disagree in sign. */
export function sampleConflict(
  size: number,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
): number {
  let conflicts = 0;
  for (let word = 0; word * 32 < size; word++) {
    let positive = 0;
    let negative = 0;
    for (const { kept, weight } of contributions) {
      const sign = preset.ballots === 'unweighted' ? 1 : Math.sign(weight);
      if (sign === 0) continue;
      positive |= (sign > 0 ? kept.positive : kept.negative)[word]!;
      negative |= (sign > 0 ? kept.negative : kept.positive)[word]!;
    }
    conflicts += ones(positive & negative);
  }
  return size > 0 ? conflicts / size : 0;
}

/** In how many elements of a sample two contributors both keep something, contributor by contributor. */
export function sharedPlaces(kept: readonly KeptSample[]): number[][] {
  const places = kept.map(({ positive, negative }) => positive.map((word, i) => word | negative[i]!));
  const shared = kept.map(() => new Array<number>(kept.length).fill(0));
  for (const [i, a] of places.entries()) {
    for (let j = i; j < places.length; j++) {
      const b = places[j]!;
      let both = 0;
      for (let word = 0; word < a.length; word++) both += ones(a[word]! & b[word]!);
      shared[i]![j] = both;
      shared[j]![i] = both;
    }
  }
  return shared;
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

/** Evenly spread numbers in [0, 1), the same every time (Kronecker sequences). */
function draw(e: number, model: number): number {
  return ((e + 1) * STEPS[model % STEPS.length]!) % 1;
}

/** Elements of a sample in one bin of |τ|, each standing for `weight` elements of its tensor. */
export interface BinMember {
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
  const found: { pattern: number; weight: number }[] = [];
  for (const { bins, count: all } of members) {
    const [first, end] = elementsBetween(bins, patternOf(low), patternOf(high));
    for (let at = first; at < end; at++) {
      found.push({ pattern: bins.elements[2 * at]! & 0x7fffffff, weight: all / (end - first) });
    }
  }
  found.sort((a, b) => b.pattern - a.pattern);
  let sum = 0;
  for (let i = 0; i < found.length; ) {
    const { pattern } = found[i]!;
    let equal = 0;
    for (; i < found.length && found[i]!.pattern === pattern; i++) equal += found[i]!.weight;
    if (sum + equal >= count || i === found.length) {
      BITS[0] = pattern;
      return { threshold: F32[0]!, share: equal > 0 ? Math.min(1, (count - sum) / equal) : 1 };
    }
    sum += equal;
  }
  return undefined;
}

/** How many elements of a sample are as large as a magnitude exactly. */
export function tiesOf(bins: SampleBins, magnitude: number): number {
  const pattern = patternOf(magnitude);
  const [first, end] = elementsBetween(bins, pattern, pattern + 1);
  let ties = 0;
  for (let at = first; at < end; at++) if ((bins.elements[2 * at]! & 0x7fffffff) === pattern) ties++;
  return ties;
}
