/** What several task vectors do together, judged by a sample of their elements: sign conflicts and the output's change. */
import type { TensorProfile } from '../../engine/protocol-profile';
import type { DeltaPreset } from '../method';
import { reciprocal } from '../tensor/divisor';

/** Which elements of a sample a selector keeps. */
export type SampleSelection =
  | { kind: 'all' }
  /** from ≤ |τ| < below */
  | { kind: 'band'; from: number; below: number }
  /** With this chance, by place in the sample; the draws are fixed, so that a slider does not flicker. */
  | { kind: 'random'; probability(place: number): number };

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

/** Applies a selection to the sample of contributor `model`. */
export function keptSample(values: Float32Array, selection: SampleSelection, model: number): KeptSample {
  const words = Math.ceil(values.length / 32);
  const positive = new Uint32Array(words);
  const negative = new Uint32Array(words);
  const { kind } = selection;
  const [from, below] = kind === 'band' ? [selection.from, selection.below] : [0, Number.POSITIVE_INFINITY];
  for (let e = 0; e < values.length; e++) {
    const value = values[e]!;
    const magnitude = Math.abs(value);
    if (!(magnitude >= from && magnitude < below)) continue;
    if (kind === 'random' && draw(e, model) >= selection.probability(e)) continue;
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

/** Bits that are 1. */
function ones(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/**
 * What is cast at each element of a sample: the vote, the sums of those who vote for either sign, and who they are. All 0
 * in between: hundreds of tensors are judged for a step of a slider.
 */
let votes = new Float64Array(0);
let sums: [Float64Array, Float64Array] = [votes, votes];
let voters: [Int32Array, Int32Array] = [new Int32Array(0), new Int32Array(0)];

/**
 * ‖output − W₀‖ / ‖W₀‖: the delta pipeline on the sample. Weights are the recipe's: not for presets that weigh by
 * energy.
 */
export function sampleChange(
  profile: TensorProfile,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
): number {
  const { changes, base } = profile.sample;
  const models = changes.length;
  const kept = contributions.map((c) => c.kept);
  const scales = contributions.map((c, i) => rescaled(preset, c, changes[i]!));
  const factors = contributions.map(({ weight }, i) => scales[i]! * weight);
  const ballots = preset.ballots === 'unweighted' ? scales : factors;
  const divisors = divisorsOf(
    preset,
    contributions.map((c) => c.weight),
  );
  const elects = preset.consensus !== 'none';
  const byCount = preset.consensus === 'count';
  const everybody = 2 ** models - 1;
  if (votes.length < base.length) {
    votes = new Float64Array(base.length);
    sums = [new Float64Array(base.length), new Float64Array(base.length)];
    voters = [new Int32Array(base.length), new Int32Array(base.length)];
  }
  const [up, down] = sums;
  const [positive, negative] = voters;
  let square = 0;
  for (let word = 0; word * 32 < base.length; word++) {
    let touched = 0;
    for (let i = 0; i < models; i++) {
      const values = changes[i]!;
      const [factor, weight] = [factors[i]!, ballots[i]!];
      let open = kept[i]!.positive[word]! | kept[i]!.negative[word]!;
      touched |= open;
      while (open !== 0) {
        const place = 31 - Math.clz32(open);
        open ^= 1 << place;
        const e = word * 32 + place;
        const value = values[e]!;
        const ballot = value * weight;
        votes[e]! += byCount ? Math.sign(ballot) : ballot;
        if (ballot > 0) {
          positive[e]! |= 1 << i;
          up[e]! += value * factor;
        } else if (ballot < 0) {
          negative[e]! |= 1 << i;
          down[e]! += value * factor;
        }
      }
    }
    while (touched !== 0) {
      const place = 31 - Math.clz32(touched);
      touched ^= 1 << place;
      const e = word * 32 + place;
      const lower = votes[e]! < 0;
      const taken = elects ? (lower ? negative : positive)[e]! : everybody;
      const sum = elects ? (lower ? down : up)[e]! : up[e]! + down[e]!;
      square += (sum * divisors(taken)) ** 2;
      votes[e] = up[e] = down[e] = positive[e] = negative[e] = 0;
    }
  }
  const size = base.length;
  const norm = Math.sqrt(profile.products[0]![0]!);
  const change = size > 0 ? Math.abs(preset.lambda) * Math.sqrt((square / size) * profile.elements) : 0;
  return norm > 0 ? change / norm : 0;
}

/** The reciprocal of the divisor for a set of agreeing models, bit i for model i. */
function divisorsOf(preset: DeltaPreset, weights: readonly number[]): (agreeing: number) => number {
  if (!preset.normalize) return () => 1;
  const known = new Float64Array(2 ** weights.length).fill(Number.NaN);
  return (agreeing) => {
    const divisor = known[agreeing]!;
    if (!Number.isNaN(divisor)) return divisor;
    const taking = weights.filter((_, i) => (agreeing >> i) & 1);
    known[agreeing] = reciprocal(preset, taking);
    return known[agreeing]!;
  };
}

/** Steps that share no common measure, one per model: draws of different models are independent. */
const STEPS = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53].map((p) => Math.sqrt(p) % 1);

/** Evenly spread numbers in [0, 1), the same every time (Kronecker sequences). */
function draw(e: number, model: number): number {
  return ((e + 1) * STEPS[model % STEPS.length]!) % 1;
}

/** What kept values are multiplied by; a chance of its own for every element is taken at its mean. */
function rescaled(preset: DeltaPreset, { kept, share }: SampleContribution, values: Float32Array): number {
  if (share >= 1 || preset.rescale === 'none') return 1;
  if (preset.rescale !== 'l1') return share > 0 ? 1 / share : 1;
  let [before, after] = [0, 0];
  for (let e = 0; e < values.length; e++) {
    const magnitude = Math.abs(values[e]!);
    before += magnitude;
    if (((kept.positive[e >> 5]! | kept.negative[e >> 5]!) >>> (e & 31)) & 1) after += magnitude;
  }
  return before >= 1e-7 && after >= 1e-7 ? before / after : 1;
}
