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
}
