/** Replay of a merge on a tensor's sample: how far elements move, which stay, whose changes the vote drops. */

import { f32ToBf16, f32ToF16 } from '../../formats/half';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { DeltaPreset } from '../method';
import { reciprocalOf } from '../tensor/delta-measure';
import { onesOf, type SampleContribution, sharedOnes } from './sample-selection';

/**
 * A sample merged under certain settings, in arrays that the next settings take over: a step of a slider changes few of its
 * elements, and the others stay as they are.
 */
export interface ReplayedSample {
  preset: DeltaPreset;
  weights: readonly number[];
  /** Factor of each model's kept values in the sum. */
  factors: readonly number[];
  /** 1 / divisor where no sign is elected: the same for all elements. */
  share: number;
  /** Elements kept of each model, as bits, and the version of the sample they are from. */
  kept: readonly Uint32Array[];
  versions: number[];
  /** Output − W₀ of every element, before λ. */
  deltas: Float64Array;
  /** Its squares added up by 32: what a step leaves alone is not added again. */
  sums: Float64Array;
  /** 1 where a sum is not known any more. */
  unsummed: Uint8Array;
  /** Model by model the kept changes that the vote drops, as bits. */
  lost: readonly Uint32Array[];
  still: StillSample;
  /** In how many elements two models both keep something, of which versions. */
  shared: { of: number[]; counts: number[][] };
}

/** Which elements stay at the base under a certain λ, as bits. */
interface StillSample {
  lambda: number;
  bits: Uint32Array;
  /** Those of which it is not known any more, as bits. */
  stale: Uint32Array;
}

/**
 * The delta pipeline on the sample. Weights are the recipe's: not for presets that weigh by energy.
 * @param before the same sample under other settings, which is taken over
 */
export function replaySample(
  { sample: { changes, base } }: DeltaStatistics,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
  before: ReplayedSample | undefined,
): ReplayedSample {
  const weights = contributions.map((c) => c.weight);
  const scales = contributions.map((c, i) => rescaled(preset, c, changes[i]!));
  const factors = weights.map((weight, i) => scales[i]! * weight);
  const share =
    preset.normalize && preset.consensus === 'none'
      ? reciprocalOf(
          preset,
          weights.length,
          weights.reduce((a, b) => a + b, 0),
        )
      : 1;
  const replayed = before ?? notReplayed(preset, weights.length, base.length);
  if (!samePipeline(replayed.preset, preset) || replayed.share !== share) forget(replayed);
  const moved = contributions.flatMap(({ kept: { positive, negative, version } }, i) => {
    // of a model with another factor all that it keeps counts anew, of the others what they keep now and did not, or did
    const isScaled = weights[i] !== replayed.weights[i] || factors[i] !== replayed.factors[i];
    if (!isScaled && version === replayed.versions[i]) return [];
    replayed.versions[i] = version;
    return { positive, negative, known: replayed.kept[i]!, isScaled };
  });
  Object.assign(replayed, { preset, weights, factors, share });
  if (moved.length === 0) return replayed;
  const replay = replayOf(changes, replayed, scales);
  const { stale } = replayed.still;
  for (let word = 0; word < stale.length; word++) {
    let open = 0;
    for (let m = 0; m < moved.length; m++) {
      const { positive, negative, known, isScaled } = moved[m]!;
      const now = positive[word]! | negative[word]!;
      open |= isScaled ? now | known[word]! : now ^ known[word]!;
      known[word] = now;
    }
    if (open === 0) continue;
    replay(word, open);
    replayed.unsummed[word] = 1;
    stale[word]! |= open;
  }
  return replayed;
}

function notReplayed(preset: DeltaPreset, models: number, size: number): ReplayedSample {
  const words = Math.ceil(size / 32);
  const bits = () => Array.from({ length: models }, () => new Uint32Array(words));
  return {
    preset,
    weights: [],
    factors: [],
    share: Number.NaN,
    kept: bits(),
    versions: [],
    deltas: new Float64Array(size),
    sums: new Float64Array(words),
    unsummed: new Uint8Array(words),
    lost: bits(),
    still: { lambda: Number.NaN, bits: new Uint32Array(words), stale: new Uint32Array(words) },
    shared: { of: [], counts: [] },
  };
}

/** Nothing is kept, and nothing moves. */
function forget({ kept, lost, deltas, sums, unsummed, still, ...rest }: ReplayedSample): void {
  for (const bits of [...kept, ...lost]) bits.fill(0);
  for (const list of [deltas, sums, unsummed]) list.fill(0);
  still.lambda = Number.NaN;
  rest.versions.fill(Number.NaN);
}

/** The share of a replayed sample that stays at the base when W₀ + λ·delta is rounded to the tensor's dtype. */
export function replayedAtBase(
  { sample: { base }, dtype }: DeltaStatistics,
  { preset: { lambda }, deltas, still }: ReplayedSample,
): number {
  const { bits, stale } = still;
  if (still.lambda !== lambda) {
    stale.fill(-1);
    const rest = base.length % 32;
    if (rest > 0) stale[stale.length - 1] = (1 << rest) - 1;
    still.lambda = lambda;
  }
  for (let word = 0; word < bits.length; word++) {
    let open = stale[word]!;
    if (open === 0) continue;
    let own = bits[word]! & ~open;
    while (open !== 0) {
      const place = 31 - Math.clz32(open);
      open ^= 1 << place;
      const e = word * 32 + place;
      const delta = deltas[e]!;
      if (delta === 0 || staysAtBase(base[e]!, lambda * delta, dtype)) own |= 1 << place;
    }
    bits[word] = own;
    stale[word] = 0;
  }
  return base.length > 0 ? onesOf(bits) / base.length : 0;
}

/** In how many elements of a replayed sample two models both keep something, model by model. */
export function replayedShared({ kept, versions, shared }: ReplayedSample): number[][] {
  const moved = versions.map((version, i) => shared.of[i] !== version);
  const counts = kept.map((a, i) =>
    kept.map((b, j) => (j < i ? 0 : moved[i] || moved[j] ? sharedOnes(a, b) : shared.counts[i]![j]!)),
  );
  for (const [i, row] of counts.entries()) for (let j = 0; j < i; j++) row[j] = counts[j]![i]!;
  shared.of = [...versions];
  shared.counts = counts;
  return counts;
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

/** ‖output − W₀‖ / ‖W₀‖ of the tensor that a replayed sample stands for. */
export function replayedChange(
  { products, elements }: DeltaStatistics,
  { preset, deltas, sums, unsummed }: ReplayedSample,
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

/**
 * Function that replays the elements of a word: votes, sum of the elected, and their divisor. Writes output − W₀ into `deltas`,
 * and marks in `lost` whose change is dropped.
 */
function replayOf(
  changes: readonly Float32Array[],
  { preset, kept, weights, factors, share: all, deltas, lost }: ReplayedSample,
  scales: readonly number[],
): (word: number, elements: number) => void {
  const ballots = preset.ballots === 'unweighted' ? scales : factors;
  const elects = preset.consensus !== 'none';
  const byCount = preset.consensus === 'count';
  const { normalize } = preset;
  const models = kept.length;
  const keeps = new Int32Array(models);
  return (word, elements) => {
    for (let i = 0; i < models; i++) {
      keeps[i] = kept[i]![word]!;
      lost[i]![word]! &= ~elements;
    }
    for (let open = elements; open !== 0; ) {
      const place = 31 - Math.clz32(open);
      const bit = 1 << place;
      open ^= bit;
      const e = word * 32 + place;
      // no lists here: a step comes by a hundred thousand times
      let vote = 0;
      let up = 0;
      let down = 0;
      let countUp = 0;
      let countDown = 0;
      let weightUp = 0;
      let weightDown = 0;
      for (let i = 0; i < models; i++) {
        if ((keeps[i]! & bit) === 0) continue;
        const value = changes[i]![e]!;
        const ballot = value * ballots[i]!;
        if (ballot > 0) {
          vote += byCount ? 1 : ballot;
          up += value * factors[i]!;
          countUp += 1;
          weightUp += weights[i]!;
        } else if (ballot < 0) {
          vote += byCount ? -1 : ballot;
          down += value * factors[i]!;
          countDown += 1;
          weightDown += weights[i]!;
        }
      }
      if (!elects) {
        deltas[e] = (up + down) * all;
        continue;
      }
      const lower = vote < 0;
      const sum = lower ? down : up;
      deltas[e] = !normalize
        ? sum
        : sum *
          (lower ? reciprocalOf(preset, countDown, weightDown) : reciprocalOf(preset, countUp, weightUp));
      if (countUp === 0 || countDown === 0) continue;
      for (let i = 0; i < models; i++) {
        if ((keeps[i]! & bit) === 0) continue;
        const ballot = changes[i]![e]! * ballots[i]!;
        if (lower ? ballot > 0 : ballot < 0) lost[i]![word]! |= bit;
      }
    }
  };
}

/** Factor of the kept values; a probability of its own for every element is taken at its mean. */
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
