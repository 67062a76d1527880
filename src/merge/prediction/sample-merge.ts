/** The merge of a tensor's sample: what each model keeps of it, where that disagrees in sign, and what the vote leaves. */

import { f32ToBf16, f32ToF16 } from '../../formats/half';
import type { TensorSample } from '../../reports/delta-statistics';
import type { DeltaPreset } from '../method';
import { dividesBySet, reciprocalOf } from '../tensor/delta-measure';

/** Which elements of a sample are kept, by sign: bit e % 32 of word ⌊e / 32⌋. Those that are 0 are in neither. */
export interface KeptSample {
  positive: Uint32Array;
  negative: Uint32Array;
}

/** Share of one contributor in the sample. */
export interface SampleContribution {
  kept: KeptSample;
  weight: number;
  /** Factor of the kept values; a probability of its own for every element is taken at its mean. */
  scale: number;
}

/** The elements of a sample that are other than 0 and kept. */
export function keepSample(values: Float32Array, keeps: (element: number) => boolean): KeptSample {
  const words = Math.ceil(values.length / 32);
  const kept = { positive: new Uint32Array(words), negative: new Uint32Array(words) };
  for (let e = 0; e < values.length; e++) {
    const value = values[e]!;
    if (value === 0 || !keeps(e)) continue;
    (value > 0 ? kept.positive : kept.negative)[e >> 5]! |= 1 << (e & 31);
  }
  return kept;
}

/** The f32 patterns of |τ|: ordered as the magnitudes are. */
function magnitudeKeys({ buffer, byteOffset, length }: Float32Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length).map((pattern) => pattern & 0x7fffffff);
}

/** A contributor's sample by size. */
export interface SampleOrder {
  /** Keys of the magnitudes from the largest down. */
  keys: Uint32Array;
  /** By place, how many elements come before: those that are larger, and equal ones at an earlier place. */
  ranks: Uint32Array;
}

/** Orders a sample (radix sort by 11, 10 and 10 bits): of a large model there are a thousand. */
export function orderSample(values: Float32Array): SampleOrder {
  const keys = magnitudeKeys(values);
  const starts = new Uint32Array(2049);
  let places = keys.map((_, place) => place);
  let next = new Uint32Array(keys.length);
  for (const [shift, bits] of [
    [0, 10],
    [10, 10],
    [20, 11],
  ] as const) {
    const last = 2 ** bits - 1;
    starts.fill(0);
    // from the largest digit down
    for (let e = 0; e < keys.length; e++) starts[last - ((keys[e]! >>> shift) & last) + 1]! += 1;
    for (let digit = 0; digit < last; digit++) starts[digit + 1]! += starts[digit]!;
    for (let at = 0; at < places.length; at++) {
      next[starts[last - ((keys[places[at]!]! >>> shift) & last)]!++] = places[at]!;
    }
    [places, next] = [next, places];
  }
  for (let rank = 0; rank < places.length; rank++) next[places[rank]!] = rank;
  return { keys: places.map((place) => keys[place]!), ranks: next };
}

/** How many elements of a sample have a key at least as large. */
export function countFrom({ keys }: SampleOrder, key: number): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle]! >= key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Steps that share no common measure, one per model: draws of different models are independent. */
const STEPS = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53].map((p) => Math.sqrt(p) % 1);

const draws = new Map<number, Float64Array>();

/**
 * Evenly spread numbers in [0, 1) for a sample of so many elements, the same every time (Kronecker sequences): a slider does
 * not flicker.
 */
export function drawsOf(size: number, model: number): Float64Array {
  const step = STEPS[model % STEPS.length]!;
  const known = draws.get(step);
  if (known && known.length >= size) return known;
  const made = Float64Array.from({ length: size }, (_, e) => ((e + 1) * step) % 1);
  draws.set(step, made);
  return made;
}

/** What a model keeps, by the sign it votes for; nothing where its vote has no weight. */
function votesOf(
  { ballots }: DeltaPreset,
  { kept: { positive, negative }, weight }: SampleContribution,
): { up: Uint32Array; down: Uint32Array } {
  if (ballots === 'unweighted' || weight > 0) return { up: positive, down: negative };
  if (weight < 0) return { up: negative, down: positive };
  const none = new Uint32Array(positive.length);
  return { up: none, down: none };
}

/** The number of sampled elements where kept changes disagree in sign. */
export function sampleConflicts(preset: DeltaPreset, contributions: readonly SampleContribution[]): number {
  const votes = contributions.map((c) => votesOf(preset, c));
  const words = votes[0]?.up.length ?? 0;
  let conflicts = 0;
  for (let word = 0; word < words; word++) {
    let [up, down] = [0, 0];
    for (let i = 0; i < votes.length; i++) {
      up |= votes[i]!.up[word]!;
      down |= votes[i]!.down[word]!;
    }
    conflicts += ones(up & down);
  }
  return conflicts;
}

/** In how many sampled elements two models both keep something, model by model. */
export function sampleShared(contributions: readonly SampleContribution[]): number[][] {
  const shared = contributions.map(() => contributions.map(() => 0));
  for (const [i, { kept: a }] of contributions.entries()) {
    for (const [j, { kept: b }] of contributions.slice(0, i + 1).entries()) {
      let count = 0;
      for (let word = 0; word < a.positive.length; word++) {
        count += ones((a.positive[word]! | a.negative[word]!) & (b.positive[word]! | b.negative[word]!));
      }
      shared[i]![j] = count;
      shared[j]![i] = count;
    }
  }
  return shared;
}

/** Bits that are 1. */
function ones(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** A merged sample. */
export interface SampleMerge {
  /** Elements that stay at the base when the output is rounded to the tensor's dtype. */
  atBase: number;
  /** Σ (output − W₀)² before that. */
  square: number;
  /** Model by model the kept changes that the vote drops. */
  lost: number[];
}

/**
 * The delta pipeline from votes to W₀ + λ·Σ. Weights are the recipe's: not for presets that weigh by energy.
 * @param dtype of the output
 */
export function mergeSample(
  { base, changes }: TensorSample,
  dtype: string,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
): SampleMerge {
  const votes = contributions.map((c) => votesOf(preset, c));
  const factors = Float64Array.from(contributions, (c) => c.weight * c.scale);
  const ballots =
    preset.ballots === 'unweighted' ? Float64Array.from(contributions, (c) => c.scale) : factors;
  const shares = Float64Array.from(contributions, (c) => (preset.divisor === 'count' ? 1 : c.weight));
  const elects = preset.consensus !== 'none';
  const divides = preset.normalize && dividesBySet(preset);
  const whole = shares.reduce((a, b) => a + b, 0);
  const all = preset.normalize && !divides ? reciprocalOf(preset, whole, whole) : 1;
  const lost = contributions.map(() => 0);
  let [atBase, square] = [0, 0];
  // 32 elements of a model at a time, and no branch for what is not kept: a step of a slider comes by millions of them
  const [vote, sum, divisor] = [new Float64Array(32), new Float64Array(32), new Float64Array(32)];
  for (let first = 0, word = 0; first < base.length; first += 32, word++) {
    const count = Math.min(32, base.length - first);
    let lower = 0;
    if (elects) {
      vote.fill(0);
      for (let i = 0; i < votes.length; i++) {
        const [up, down] = [votes[i]!.up[word]!, votes[i]!.down[word]!];
        if ((up | down) === 0) continue;
        if (preset.consensus === 'count') {
          addBits(vote, count, up, 1);
          addBits(vote, count, down, -1);
        } else {
          addKept(vote, count, changes[i]!, first, up | down, ballots[i]!);
        }
      }
      lower = negativeOf(vote);
    }
    sum.fill(0);
    if (divides) divisor.fill(0);
    for (let i = 0; i < votes.length; i++) {
      const [up, down] = [votes[i]!.up[word]!, votes[i]!.down[word]!];
      if ((up | down) === 0) continue;
      const agreeing = elects ? (up & ~lower) | (down & lower) : up | down;
      lost[i]! += ones((up | down) & ~agreeing);
      addKept(sum, count, changes[i]!, first, agreeing, factors[i]!);
      if (divides) addBits(divisor, count, agreeing, shares[i]!);
    }
    if (divides) divide(sum, divisor, preset);
    square += scale(sum, count, all * preset.lambda);
    atBase += countAtBase(base, first, sum, count, dtype);
  }
  return { atBase, square, lost };
}

/** Adds values times a factor where a bit is 1. */
function addKept(
  to: Float64Array,
  count: number,
  values: Float32Array,
  first: number,
  bits: number,
  factor: number,
): void {
  for (let bit = 0; bit < count; bit++) to[bit]! += values[first + bit]! * factor * ((bits >>> bit) & 1);
}

/** Adds a value where a bit is 1. */
function addBits(to: Float64Array, count: number, bits: number, value: number): void {
  for (let bit = 0; bit < count; bit++) to[bit]! += value * ((bits >>> bit) & 1);
}

/** The places of numbers below 0, as bits. */
function negativeOf(numbers: Float64Array): number {
  let bits = 0;
  for (let bit = 0; bit < numbers.length; bit++) bits |= Number(numbers[bit]! < 0) << bit;
  return bits;
}

/** Divides each sum by what its divisor comes to under a preset. */
function divide(sum: Float64Array, divisor: Float64Array, preset: DeltaPreset): void {
  for (let bit = 0; bit < sum.length; bit++) sum[bit]! *= reciprocalOf(preset, divisor[bit]!, divisor[bit]!);
}

/** Multiplies sums; returns Σ of their squares. */
function scale(sum: Float64Array, count: number, factor: number): number {
  let square = 0;
  for (let bit = 0; bit < count; bit++) {
    const delta = sum[bit]! * factor;
    sum[bit] = delta;
    square += delta * delta;
  }
  return square;
}

function countAtBase(
  base: Float32Array,
  first: number,
  delta: Float64Array,
  count: number,
  dtype: string,
): number {
  let staying = 0;
  for (let bit = 0; bit < count; bit++) {
    if (staysAtBase(base[first + bit]!, delta[bit]!, dtype)) staying += 1;
  }
  return staying;
}

const F32 = new Float32Array(2);
const BITS = new Uint32Array(F32.buffer);

/** Whether base + delta, rounded to a dtype, is the base rounded to it. */
export function staysAtBase(base: number, delta: number, dtype: string): boolean {
  if (delta === 0) return true;
  F32[0] = base;
  F32[1] = base + delta;
  if (dtype === 'BF16') return f32ToBf16(BITS[0]!) === f32ToBf16(BITS[1]!);
  if (dtype === 'F16') return f32ToF16(BITS[0]!) === f32ToF16(BITS[1]!);
  return F32[0] === F32[1];
}
