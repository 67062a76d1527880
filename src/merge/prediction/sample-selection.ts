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
  /** from ≤ |τ| < below */
  | { kind: 'band'; from: number; below: number };

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
  const { from, below } = bandOf(selection);
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
  return { positive, negative, band: { from, below } };
}

/** What {@link keptSample} says of a selection by size, from what it said of another one: only what changes is looked at. */
export function steppedSample(bins: SampleBins, selection: SizeSelection, before: SizedSample): SizedSample {
  const { from, below } = bandOf(selection);
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
  judge(Math.min(from, then.from), Math.max(from, then.from));
  judge(Math.min(below, then.below), Math.max(below, then.below));
  return { positive, negative, band: { from, below } };
}

/** Patterns from ≤ |τ| < below. Magnitudes are ordered as their patterns are; zeros are never kept. */
function bandOf(selection: SizeSelection): Band {
  if (selection.kind === 'all') return { from: 1, below: INFINITE };
  return { from: Math.max(1, patternFrom(selection.from)), below: patternFrom(selection.below) };
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
function patternFrom(magnitude: number): number {
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
