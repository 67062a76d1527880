/** What several task vectors do together, judged by a sample of their elements: sign conflicts and the output's change. */
import type { TensorProfile } from '../engine/protocol-profile';
import { reciprocal } from './divisor';
import type { DeltaPreset } from './method';

/** Which elements of a sample a selector keeps. */
export type SampleSelection =
  | { kind: 'all' }
  /** from ≤ |τ| < below */
  | { kind: 'band'; from: number; below: number }
  /** With this chance, by place in the sample; the draws are fixed, so that a slider does not flicker. */
  | { kind: 'random'; probability(place: number): number };

export interface SampleVerdict {
  /** Share of elements where kept changes disagree in sign. */
  signConflict: number;
  /** ‖output − W₀‖ / ‖W₀‖ */
  change: number;
}

/** What one contributor brings to the sample. */
export interface SampleContribution {
  selection: SampleSelection;
  /** Share of the tensor's elements that are kept. */
  share: number;
  weight: number;
}

/**
 * Runs the delta pipeline on the sample. Weights are the recipe's: not for presets that weigh by energy. Loops go model
 * by model over arrays that stay in cache: a slider on the move asks for hundreds of tensors.
 */
export function judgeSample(
  profile: TensorProfile,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
): SampleVerdict {
  const { changes, base } = profile.sample;
  const size = base.length;
  const weights = contributions.map((c) => c.weight);
  const divisors = divisorsOf(preset, weights);
  const elects = preset.consensus !== 'none';
  const votes = new Float32Array(size);
  const sums = new Float32Array(size);
  const positive = new Uint16Array(size);
  const negative = new Uint16Array(size);
  const parts = changes.map((values, i) => {
    const kept = keptValues(values, contributions[i]!.selection, i);
    const scale = rescaled(preset, contributions[i]!, values, kept);
    const factor = scale * weights[i]!;
    const ballot = preset.ballots === 'unweighted' ? scale : factor;
    const count = preset.consensus === 'count';
    const bit = 1 << i;
    for (let e = 0; e < size; e++) {
      const b = kept[e]! * ballot;
      sums[e]! += kept[e]! * factor;
      if (b > 0) positive[e]! |= bit;
      else if (b < 0) negative[e]! |= bit;
      votes[e]! += count ? Math.sign(b) : b;
    }
    return { kept, factor };
  });
  let conflicts = 0;
  for (let e = 0; e < size; e++) if (positive[e] !== 0 && negative[e] !== 0) conflicts++;
  const agreeing = positive;
  if (elects) {
    sums.fill(0);
    for (let e = 0; e < size; e++) if (votes[e]! < 0) agreeing[e] = negative[e]!;
    for (const [i, { kept, factor }] of parts.entries()) {
      for (let e = 0; e < size; e++) if ((agreeing[e]! >> i) & 1) sums[e]! += kept[e]! * factor;
    }
  } else {
    agreeing.fill(2 ** changes.length - 1);
  }
  let square = 0;
  for (let e = 0; e < size; e++) square += (sums[e]! * divisors(agreeing[e]!)) ** 2;
  const norm = Math.sqrt(profile.products[0]![0]!);
  const change = size > 0 ? Math.abs(preset.lambda) * Math.sqrt((square / size) * profile.elements) : 0;
  return { signConflict: size > 0 ? conflicts / size : 0, change: norm > 0 ? change / norm : 0 };
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

/** The sample of contributor `model` with what is not kept set to 0. */
export function keptValues(values: Float32Array, selection: SampleSelection, model: number): Float32Array {
  if (selection.kind === 'all') return values;
  const out = new Float32Array(values.length);
  for (let e = 0; e < values.length; e++) {
    const magnitude = Math.abs(values[e]!);
    const keep =
      selection.kind === 'band'
        ? magnitude >= selection.from && magnitude < selection.below
        : draw(e, model) < selection.probability(e);
    if (keep) out[e] = values[e]!;
  }
  return out;
}

/** Steps that share no common measure, one per model: draws of different models are independent. */
const STEPS = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53].map((p) => Math.sqrt(p) % 1);

/** Evenly spread numbers in [0, 1), the same every time (Kronecker sequences). */
function draw(e: number, model: number): number {
  return ((e + 1) * STEPS[model % STEPS.length]!) % 1;
}

/** What kept values are multiplied by; a chance of its own for every element is taken at its mean. */
function rescaled(
  preset: DeltaPreset,
  { selection, share }: SampleContribution,
  values: Float32Array,
  kept: Float32Array,
): number {
  if (selection.kind === 'all' || preset.rescale === 'none') return 1;
  if (preset.rescale !== 'l1') return share > 0 ? 1 / share : 1;
  const norm = (of: Float32Array) => of.reduce((sum, v) => sum + Math.abs(v), 0);
  const [before, after] = [norm(values), norm(kept)];
  return before >= 1e-7 && after >= 1e-7 ? before / after : 1;
}
