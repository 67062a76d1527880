/** What several task vectors do together, judged by a sample of their elements: sign conflicts and the output's change. */
import type { TensorProfile } from '../engine/protocol-profile';
import { reciprocal } from './divisor';
import type { DeltaPreset } from './method';

/** Which elements of a sample a selector keeps. */
export type SampleSelection =
  | { kind: 'all' }
  /** from ≤ |τ| < below */
  | { kind: 'band'; from: number; below: number }
  /** With this chance, by |τ|; the draws are fixed, so that a slider does not flicker. */
  | { kind: 'random'; probability(magnitude: number): number };

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

/** Runs the delta pipeline on the sample, in f64. Weights are the recipe's: not for presets that weigh by energy. */
export function judgeSample(
  profile: TensorProfile,
  preset: DeltaPreset,
  contributions: readonly SampleContribution[],
): SampleVerdict {
  const { changes, base } = profile.sample;
  const n = changes.length;
  const size = base.length;
  const kept = changes.map((values, i) => keptValues(values, contributions[i]!.selection, i));
  const scales = changes.map((values, i) => rescaled(preset, contributions[i]!, values, kept[i]!));
  const weights = contributions.map((c) => c.weight);
  const factors = weights.map((w, i) => w * scales[i]!);
  const divisors = divisorsOf(preset, weights);
  const elects = preset.consensus !== 'none';
  let conflicts = 0;
  let square = 0;
  for (let e = 0; e < size; e++) {
    let vote = 0;
    let sum = 0;
    let positive = 0;
    let negative = 0;
    for (let i = 0; i < n; i++) {
      const d = kept[i]![e]! * factors[i]!;
      if (d === 0) continue;
      const ballot = preset.ballots === 'unweighted' ? kept[i]![e]! * scales[i]! : d;
      if (ballot > 0) positive |= 1 << i;
      else negative |= 1 << i;
      vote += preset.consensus === 'count' ? Math.sign(ballot) : ballot;
      sum += d;
    }
    if (positive !== 0 && negative !== 0) conflicts++;
    let agreeing = 2 ** n - 1;
    if (elects) {
      agreeing = vote >= 0 ? positive : negative;
      sum = 0;
      for (let i = 0; i < n; i++) if ((agreeing >> i) & 1) sum += kept[i]![e]! * factors[i]!;
    }
    square += (sum * divisors(agreeing) * preset.lambda) ** 2;
  }
  const norm = Math.sqrt(profile.products[0]![0]!);
  const change = size > 0 ? Math.sqrt((square / size) * profile.elements) : 0;
  return { signConflict: size > 0 ? conflicts / size : 0, change: norm > 0 ? change / norm : 0 };
}

/** The reciprocal of the divisor for a set of agreeing models, bit i for model i. */
function divisorsOf(preset: DeltaPreset, weights: readonly number[]): (agreeing: number) => number {
  if (!preset.normalize) return () => 1;
  const known = new Map<number, number>();
  return (agreeing) => {
    let divisor = known.get(agreeing);
    if (divisor === undefined) {
      divisor = reciprocal(
        preset,
        weights.filter((_, i) => (agreeing >> i) & 1),
      );
      known.set(agreeing, divisor);
    }
    return divisor;
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
        : draw(e, model) < selection.probability(magnitude);
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
