import type { ResolvedParameters } from './plan';

/**
 * A merge method is one file in `methods/` that exports one literal of this shape, and one line in `methods/index.ts`.
 * Form fields, recipe validation, YAML names, help, the docs table and its contract tests are derived from it.
 */
export interface MergeMethod {
  /** The name in recipes, as mergekit spells it. */
  id: string;
  title: string;
  /** One line for the picker. */
  summary: string;
  /** The formula in plain characters. */
  formula: string;
  reference: { label: string; url: string };
  base: 'required' | 'optional' | 'none';
  /** How many contributors, the base not counted. */
  models: { min: number; max: number };
  /** Method-wide parameters by recipe name. */
  parameters: Readonly<Record<string, ParameterSpec>>;
  /** Parameters of each contributor by recipe name. */
  modelParameters: Readonly<Record<string, ParameterSpec>>;
  /** Does the result stay the same (up to rounding) when contributors swap places? */
  permutation: 'invariant' | 'ordered';
  /** How a tensor is computed. */
  compute: MethodCompute;
}

/**
 * `delta`: a preset of the delta pipeline (merge/delta-pipeline.ts).
 * `weights`: out = Σ cᵢ·Wᵢ over full weights, with coefficients known before any data is read.
 */
export type MethodCompute =
  | { kind: 'delta'; preset(parameters: ResolvedParameters): DeltaPreset }
  | {
      kind: 'weights';
      coefficients(models: readonly ResolvedParameters[], parameters: ResolvedParameters): number[];
    };

/** Every knob of the delta pipeline: τᵢ → select → rescale → combine → ×λ → + W₀. */
export interface DeltaPreset {
  /** `top-k` keeps the ⌊ρn⌋ largest |τ|; `random` keeps each element with probability ρ; ρ is the model's `density`. */
  select: 'all' | 'top-k' | 'random';
  /** What kept values are multiplied by: 1, 1/ρ, or ‖τ‖₁ / ‖kept‖₁. */
  rescale: 'none' | '1/density' | 'l1';
  /** `sum` elects the sign of Σ wᵢτ̂ᵢ (zero counts as +) and drops what disagrees. */
  consensus: 'none' | 'sum';
  /** Divide by the sum of the (agreeing) weights. */
  normalize: boolean;
  lambda: number;
}

export type ParameterSpec = NumberSpec | BooleanSpec | ChoiceSpec;

interface SpecBase {
  label: string;
  help: string;
  /** Accepted and kept for the YAML round trip, but without effect on the result (mergekit's `int8_mask`). */
  inert?: boolean;
}
export interface NumberSpec extends SpecBase {
  kind: 'number';
  /** Absent: the recipe must give a value. */
  default?: number;
  /** Hard bounds; outside is an error. */
  min: number;
  max: number;
  /** Range of the slider. */
  slider?: { min: number; max: number; step: number };
  integer?: boolean;
}
export interface BooleanSpec extends SpecBase {
  kind: 'boolean';
  default: boolean;
}
export interface ChoiceSpec extends SpecBase {
  kind: 'choice';
  default: string;
  choices: readonly { value: string; label: string }[];
  /** mergekit spells this parameter as a boolean: what `true` and `false` mean here. */
  booleans?: { true: string; false: string };
}
