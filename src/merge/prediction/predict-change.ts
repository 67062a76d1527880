/** What a merge does to the elements of a tensor's sample: how far they move, which stay, whose changes the vote drops. */

import { f32ToBf16, f32ToF16 } from '../../formats/half';
import type { DeltaStatistics } from '../../reports/profile';
import type { DeltaPreset } from '../method';
import { reciprocalOf } from '../tensor/divisor';
import type { KeptSample, SampleContribution } from './sample-selection';

/** A sample judged under certain settings. A step of a slider changes few of its elements: the others stay judged. */
export interface JudgedSample {
  preset: DeltaPreset;
  kept: readonly KeptSample[];
  weights: readonly number[];
  /** What kept values of each model are multiplied by in the sum. */
  factors: readonly number[];
  /** Output − W₀ of every element, before λ. */
  deltas: Float64Array;
  /** Its squares added up by 32: what a step leaves alone is not added again. */
  sums: Float64Array;
  /** 1 where a sum is not known any more. */
  unsummed: Uint8Array;
  /** Model by model the kept changes that the vote drops, as bits. */
  lost: Uint32Array[];
  still: StillSample;
}

/** How many elements of every 32 stay at the base under a certain λ. */
interface StillSample {
  lambda: number;
  counts: Uint8Array;
  /** 1 where a count is not known any more. */
  stale: Uint8Array;
}

/**
 * The delta pipeline on the sample. Weights are the recipe's: not for presets that weigh by energy.
 * @param before the same sample under other settings; its arrays are taken over and not to be used any more
 */
export function judgeSample(
  { sample: { changes, base } }: DeltaStatistics,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
  before: JudgedSample | undefined,
): JudgedSample {
  const kept = contributions.map((c) => c.kept);
  const weights = contributions.map((c) => c.weight);
  const scales = contributions.map((c, i) => rescaled(preset, c, changes[i]!));
  const factors = weights.map((weight, i) => scales[i]! * weight);
  const same =
    before !== undefined &&
    samePipeline(before.preset, preset) &&
    sameNumbers(before.weights, weights) &&
    sameNumbers(before.factors, factors);
  const old = same ? before : undefined;
  const words = Math.ceil(base.length / 32);
  const deltas = before?.deltas ?? new Float64Array(base.length);
  const sums = before?.sums ?? new Float64Array(words);
  const unsummed = before?.unsummed ?? new Uint8Array(words);
  const lost = before?.lost ?? changes.map(() => new Uint32Array(words));
  const still = before?.still ?? {
    lambda: Number.NaN,
    counts: new Uint8Array(words),
    stale: new Uint8Array(words),
  };
  if (!old) {
    deltas.fill(0);
    sums.fill(0);
    unsummed.fill(0);
    for (const bits of lost) bits.fill(0);
    still.lambda = Number.NaN;
  }
  const judge = deltaOf(changes, preset, { kept, weights, factors, scales }, lost);
  const moved = kept.map((now, i) => now !== old?.kept[i]);
  for (let word = 0; word * 32 < base.length; word++) {
    let open = 0;
    for (let i = 0; i < kept.length; i++) {
      if (!moved[i]) continue;
      const now = kept[i]!.positive[word]! | kept[i]!.negative[word]!;
      const then = old ? old.kept[i]!.positive[word]! | old.kept[i]!.negative[word]! : 0;
      open |= now ^ then;
    }
    if (open === 0) continue;
    while (open !== 0) {
      const place = 31 - Math.clz32(open);
      open ^= 1 << place;
      deltas[word * 32 + place] = judge(word, place);
    }
    unsummed[word] = 1;
    still.stale[word] = 1;
  }
  return { preset, kept, weights, factors, deltas, sums, unsummed, lost, still };
}

/** The share of a judged sample that stays at the base when W₀ + λ·delta is rounded to the tensor's dtype. */
export function judgedAtBase(
  { sample: { base }, dtype }: DeltaStatistics,
  { preset: { lambda }, deltas, still }: JudgedSample,
): number {
  const all = still.lambda !== lambda;
  still.lambda = lambda;
  let staying = 0;
  for (let word = 0; word < still.counts.length; word++) {
    if (all || still.stale[word]) {
      const end = Math.min(word * 32 + 32, base.length);
      let n = 0;
      for (let e = word * 32; e < end; e++) {
        if (deltas[e] === 0 || staysAtBase(base[e]!, lambda * deltas[e]!, dtype)) n++;
      }
      still.counts[word] = n;
      still.stale[word] = 0;
    }
    staying += still.counts[word]!;
  }
  return base.length > 0 ? staying / base.length : 0;
}

const F32 = new Float32Array(2);
const BITS = new Uint32Array(F32.buffer);

/** Whether base + delta, rounded to a dtype, is the base rounded to it. */
export function staysAtBase(base: number, delta: number, dtype: string): boolean {
  F32[0] = base;
  F32[1] = base + delta;
  if (dtype === 'BF16') return f32ToBf16(BITS[0]!) === f32ToBf16(BITS[1]!);
  if (dtype === 'F16') return f32ToF16(BITS[0]!) === f32ToF16(BITS[1]!);
  return F32[0] === F32[1];
}

/** ‖output − W₀‖ / ‖W₀‖ of the tensor that a judged sample stands for. */
export function judgedChange(
  { products, elements }: DeltaStatistics,
  { preset, deltas, sums, unsummed }: JudgedSample,
): number {
  let square = 0;
  for (let word = 0; word < sums.length; word++) {
    if (unsummed[word]) {
      let sum = 0;
      const end = Math.min(word * 32 + 32, deltas.length);
      for (let e = word * 32; e < end; e++) sum += deltas[e]! ** 2;
      sums[word] = sum;
      unsummed[word] = 0;
    }
    square += sums[word]!;
  }
  const norm = Math.sqrt(products[0]![0]!);
  if (deltas.length === 0 || norm === 0) return 0;
  return (Math.abs(preset.lambda) * Math.sqrt((square / deltas.length) * elements)) / norm;
}

interface Cast {
  kept: readonly KeptSample[];
  weights: readonly number[];
  factors: readonly number[];
  scales: readonly number[];
}

/**
 * Output − W₀ at bit `place` of a word: who votes for which sign, what the elected sum to, and their divisor. Marks in
 * `lost` whose change is dropped.
 */
function deltaOf(
  changes: readonly Float32Array[],
  preset: DeltaPreset,
  { kept, weights, factors, scales }: Cast,
  lost: readonly Uint32Array[],
): (word: number, place: number) => number {
  const ballots = preset.ballots === 'unweighted' ? scales : factors;
  const elects = preset.consensus !== 'none';
  const byCount = preset.consensus === 'count';
  const all = reciprocalOf(
    preset,
    weights.length,
    weights.reduce((a, b) => a + b, 0),
  );
  return (word, place) => {
    let [vote, up, down] = [0, 0, 0];
    let [countUp, countDown, weightUp, weightDown] = [0, 0, 0, 0];
    for (let i = 0; i < kept.length; i++) {
      const { positive, negative } = kept[i]!;
      if ((((positive[word]! | negative[word]!) >>> place) & 1) === 0) continue;
      const value = changes[i]![word * 32 + place]!;
      const ballot = value * ballots[i]!;
      vote += byCount ? Math.sign(ballot) : ballot;
      if (ballot > 0) {
        up += value * factors[i]!;
        countUp += 1;
        weightUp += weights[i]!;
      } else if (ballot < 0) {
        down += value * factors[i]!;
        countDown += 1;
        weightDown += weights[i]!;
      }
    }
    const lower = vote < 0;
    const sum = elects ? (lower ? down : up) : up + down;
    if (elects) {
      const bit = 1 << place;
      for (let i = 0; i < kept.length; i++) {
        const { positive, negative } = kept[i]!;
        const isKept = ((positive[word]! | negative[word]!) & bit) !== 0;
        const ballot = isKept ? changes[i]![word * 32 + place]! * ballots[i]! : 0;
        if (lower ? ballot > 0 : ballot < 0) lost[i]![word]! |= bit;
        else lost[i]![word]! &= ~bit;
      }
    }
    if (!preset.normalize) return sum;
    const share = !elects
      ? all
      : lower
        ? reciprocalOf(preset, countDown, weightDown)
        : reciprocalOf(preset, countUp, weightUp);
    return sum * share;
  };
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

/** Whether two presets do the same with what is kept; λ multiplies all of it. */
function samePipeline(a: DeltaPreset, b: DeltaPreset): boolean {
  return (
    a.consensus === b.consensus &&
    a.ballots === b.ballots &&
    a.normalize === b.normalize &&
    a.divisor === b.divisor &&
    a.floor === b.floor
  );
}

function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
