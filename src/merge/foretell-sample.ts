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

/** Kept values of the sample, model by model: hundreds of tensors are judged for every step of a slider. */
let scratch = new Float32Array(0);

/** Runs the delta pipeline on the sample. Weights are the recipe's: not for presets that weigh by energy. */
export function judgeSample(
  profile: TensorProfile,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
): SampleVerdict {
  const { changes, base } = profile.sample;
  const size = base.length;
  const models = changes.length;
  if (scratch.length < models * size) scratch = new Float32Array(models * size);
  const all = scratch;
  const factors = new Float64Array(models);
  const ballots = new Float64Array(models);
  for (const [i, values] of changes.entries()) {
    const kept = all.subarray(i * size, (i + 1) * size);
    keepInto(kept, values, contributions[i]!.selection, i);
    const scale = rescaled(preset, contributions[i]!, values, kept);
    factors[i] = scale * contributions[i]!.weight;
    ballots[i] = preset.ballots === 'unweighted' ? scale : factors[i]!;
  }
  const divisors = divisorsOf(
    preset,
    contributions.map((c) => c.weight),
  );
  const elects = preset.consensus !== 'none';
  const byCount = preset.consensus === 'count';
  const everybody = 2 ** models - 1;
  let conflicts = 0;
  let square = 0;
  for (let e = 0; e < size; e++) {
    let positive = 0;
    let negative = 0;
    let vote = 0;
    for (let i = 0, at = e; i < models; i++, at += size) {
      const value = all[at]!;
      if (value === 0) continue; // most are
      const ballot = value * ballots[i]!;
      if (ballot > 0) positive |= 1 << i;
      else if (ballot < 0) negative |= 1 << i;
      vote += byCount ? Math.sign(ballot) : ballot;
    }
    if (positive !== 0 && negative !== 0) conflicts++;
    const agreeing = elects ? (vote < 0 ? negative : positive) : everybody;
    if ((positive | negative) === 0) continue;
    let sum = 0;
    for (let i = 0, at = e; i < models; i++, at += size) {
      if ((agreeing >> i) & 1) sum += all[at]! * factors[i]!;
    }
    square += (sum * divisors(agreeing)) ** 2;
  }
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
  const kept = new Float32Array(values.length);
  keepInto(kept, values, selection, model);
  return kept;
}

function keepInto(out: Float32Array, values: Float32Array, selection: SampleSelection, model: number): void {
  if (selection.kind === 'all') out.set(values);
  else if (selection.kind === 'band') {
    const { from, below } = selection;
    for (let e = 0; e < values.length; e++) {
      const value = values[e]!;
      const magnitude = Math.abs(value);
      out[e] = magnitude >= from && magnitude < below ? value : 0;
    }
  } else {
    for (let e = 0; e < values.length; e++) {
      out[e] = draw(e, model) < selection.probability(e) ? values[e]! : 0;
    }
  }
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
