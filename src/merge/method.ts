import type { Kernel } from '../backend/kernel';
import type { ResolvedParameters } from './plan/plan';
import type { Products } from './tensor/products';
import type { Score } from './tensor/score';
import type { Factored, MatrixChanges } from './tensor/spectral';
import type { SlotForm, TensorTask } from './tensor/tensor-task';
import type { VectorGroups } from './tensor/tiles';

export type { ResolvedParameters };

/**
 * A merge method is one file in `methods/` that exports one literal of this shape, its oracle, and one line in `methods/index.ts`.
 * Form fields, recipe validation, YAML names, help and the docs table are derived from it.
 */
export interface MergeMethod<P extends Specs = Specs, M extends Specs = Specs> {
  /** The name in recipes, as mergekit spells it. */
  id: string;
  title: string;
  /** One line for the picker. */
  summary: string;
  /** The formula in plain characters. */
  formula: string;
  reference: { label: string; url: string };
  base: 'required' | 'optional' | 'none';
  /**
   * The number that says most of its merges, which Layers opens on, and why. Default: the relative change, since most methods move
   * nearly every weight, and how far they do is what tells layers apart.
   */
  tells?: { metric: 'mergedSparsity'; why: string };
  /** How many contributors, the base not counted. */
  models: { min: number; max: number };
  /** Method-wide parameters by recipe name. */
  parameters: P;
  /** Parameters of each contributor by recipe name. */
  modelParameters: M;
  /**
   * Refuses values that are each in range but do not go together, for one tensor: the reason, as a sentence's end after
   * the method's name, or undefined.
   */
  validate?(parameters: Values<P>, models: readonly Values<M>[]): ParameterConflict | undefined;
  /** Parameters of a model that must be the same for every tensor, because the whole model is measured with them. */
  wholeModel?(parameters: Values<P>): readonly string[];
  /** How a tensor is computed. */
  compute: MethodCompute<Values<P>, Values<M>>;
}

type Specs = Readonly<Record<string, ParameterSpec>>;

/** Resolved values of the parameters. */
type Values<S extends Specs> = Specs extends S
  ? ResolvedParameters
  : {
      readonly [K in keyof S]: S[K] extends NumberSpec
        ? number
        : S[K] extends BooleanSpec
          ? boolean
          : S[K] extends ChoiceSpec<infer V>
            ? V
            : string;
    };

/** Declares a method; what its functions are given is typed by its parameters. */
export function defineMethod<const P extends Specs, const M extends Specs>(
  method: MergeMethod<P, M>,
): MergeMethod {
  return method as unknown as MergeMethod;
}

export interface ParameterConflict {
  /** `epsilon 0.4 must be below min(density, 1 − density) = 0.3` */
  reason: string;
  remedy: string;
}

/**
 * `delta`: a preset of the delta pipeline (merge/tensor/delta-pipeline.ts).
 * `weights`: out = Σ cᵢ·Wᵢ over full weights, with coefficients known before any data is read (merge/tensor/computation.ts).
 * `products`: the same, or W₀ + Σ cᵢ·τᵢ, with coefficients from all scalar products of the vectors (merge/tensor/products-merge.ts).
 * `elementwise`: a kernel of the method's own that looks at one element at a time (merge/tensor/computation.ts).
 * `solved`: W₀ + λ·τ, where the τ of linear layers was solved ahead of the run by what the models make of their inputs
 * (src/calibration); embedding rows are weighted by how often each model used them, all else is averaged (merge/tensor/computation.ts).
 * `spectral`: W₀ + λ·τ, where the τ of a linear layer's matrix is put together from singular directions of the changes
 * (merge/tensor/spectral.ts); all else is averaged.
 */
type MethodCompute<P = ResolvedParameters, M = ResolvedParameters> =
  | { kind: 'delta'; preset(parameters: P): DeltaPreset }
  | { kind: 'weights'; coefficients(models: readonly M[], parameters: P): number[] }
  | ProductsCompute<P, M>
  | ElementwiseCompute<P, M>
  | SolvedCompute<P>
  | SpectralCompute<P>;

export interface SpectralCompute<P = ResolvedParameters> {
  kind: 'spectral';
  lambda(parameters: P): number;
  /** τ of a matrix, in f64. */
  change(changes: MatrixChanges, parameters: P): Promise<Factored>;
}

export interface SolvedCompute<P = ResolvedParameters> {
  kind: 'solved';
  lambda(parameters: P): number;
  /** Factor of the sum of all changes, which is added. */
  sum(parameters: P): number;
}

export interface ProductsCompute<P = ResolvedParameters, M = ResolvedParameters> {
  kind: 'products';
  /** Whole weights (the base first, where there is one), changes to the base, or changes wherever there is a base. */
  vectors: 'weights' | 'changes' | 'changes if base';
  /** Elements that count as one vector. Default: the whole tensor. */
  groups?(parameters: P, shape: readonly number[]): VectorGroups;
  /**
   * One coefficient per vector, from their scalar products, in f64; or why there are none, as a sentence's end after
   * the tensor's name.
   */
  coefficients(products: Products, models: readonly M[], parameters: P): number[] | { undefined: string };
}

export interface ElementwiseCompute<P = ResolvedParameters, M = ResolvedParameters> {
  kind: 'elementwise';
  form: SlotForm;
  /** Loaded when it merges. */
  kernel(): Promise<ElementwiseKernel>;
  /** Contents of the kernel's `coefficients`. */
  coefficients(parameters: P, models: readonly M[]): number[];
  /**
   * How many counters the kernel adds up: the first of them, one per model, count the elements kept, all others of that
   * model having no effect. Absent where a method drops no changes; its kernel then has no `counters`.
   */
  counters?(models: number): number;
  /** Where given, a first pass counts, and the second works with these coefficients. */
  recount?(parameters: P, models: readonly M[], counted: readonly number[]): number[];
}

/** Every knob of the delta pipeline: τᵢ → select → rescale → combine → ×λ → + W₀. */
export interface DeltaPreset {
  /**
   * Which elements stay; ρ is the model's `density`. `top-k`: the ⌊ρn⌋ largest |τ|. `random`: each with probability ρ.
   * `rank`: each with a probability between ρ − ε and ρ + ε by its rank in the row (`epsilon`). `band`: ⌊ρn⌋ below the
   * ⌊γn⌋ largest (`gamma`). `variance`: `share` of the places where the models differ, those where they differ most.
   * `fusion`: what stands out by |τ| times the divergence of its row. `prepared`: what was chosen ahead of the run by its
   * importance (merge/tensor/prepared.ts); where nothing was (embeddings, norms), as `top-k`. `own`: by the
   * method's `score`, which may scale what is kept.
   */
  select: 'all' | 'top-k' | 'random' | 'rank' | 'band' | 'variance' | 'fusion' | 'own' | 'prepared';
  /** Opens the selection of a tensor. Loaded when it merges. */
  score?(): Promise<(task: TensorTask) => Score>;
  /** `knots`: what is kept and elected are coordinates of the singular directions that all changes of a matrix span. */
  space?: 'weights' | 'knots';
  /** `model`: one top-k threshold for all tensors of a model together. Default `tensor`. */
  scope?: 'tensor' | 'model';
  share?: number;
  /** Factor of the kept values: 1, 1/ρ, 1/their own probability, or ‖τ‖₁ / ‖kept‖₁. */
  rescale: 'none' | '1/density' | '1/probability' | 'l1';
  /** Elects a sign and drops what disagrees: `sum` that of the sum of values, `count` that of the sum of signs. */
  consensus: 'none' | 'sum' | 'count';
  /** Values cast their votes with or without their weights. Default `weighted`. */
  ballots?: 'weighted' | 'unweighted';
  /** Sign elected by a vote of zero: +, or the sign that won most elements of the whole model. Default `positive`. */
  zeroVote?: 'positive' | 'majority';
  /** `energy`: weights in proportion to the mean square of what is kept, the models' own left aside. */
  weights?: 'given' | 'energy';
  /** With `energy`: sums of squares and divisors below this count as nothing. */
  floor?: number;
  /**
   * Divide by the sum of the (agreeing) weights, or by the number of agreeing models: without an election those that keep a
   * change there.
   */
  normalize: boolean;
  divisor?: 'weights' | 'count';
  lambda: number;
}

/** Whether results of a preset depend on the seed. */
export function drawsRandomly(preset: DeltaPreset): boolean {
  return preset.select === 'random' || preset.select === 'rank';
}

export type ParameterSpec = NumberSpec | BooleanSpec | ChoiceSpec | TextSpec;

interface SpecBase {
  label: string;
  help: string;
  /** Accepted and kept for the YAML round trip, but without effect on the result (mergekit's `int8_mask`). */
  inert?: boolean;
  /** Unknown to mergekit: an export with another value than the default means something else there. */
  extension?: boolean;
  /** Other values than the default need calibration: models are run before the merge (merge/tensor/prepared.ts). */
  calibrates?: boolean;
  /** Has an effect only where a parameter of the method has one of these values: a form need not show it otherwise. */
  when?: readonly { parameter: string; is: string }[];
}
export interface NumberSpec extends SpecBase {
  kind: 'number';
  /** `auto` may stand in its place among the parameters of the whole recipe: the best is then searched for. */
  auto?: boolean;
  /** Absent: the recipe must give a value. */
  default?: number;
  /** Initial value in a form, where mergekit's default makes the method useless. */
  recommended?: number;
  /** Hard bounds; outside is an error. */
  min: number;
  max: number;
  /** Larger values count as this one, as in mergekit. */
  cap?: number;
  /** Range of the slider. */
  slider?: { min: number; max: number; step: number };
  integer?: boolean;
}
export interface BooleanSpec extends SpecBase {
  kind: 'boolean';
  default: boolean;
}
export interface ChoiceSpec<V extends string = string> extends SpecBase {
  kind: 'choice';
  default: V;
  choices: readonly { value: V; label: string }[];
  /** mergekit spells this parameter as a boolean: what `true` and `false` mean here. */
  booleans?: { true: string; false: string };
  /** Values that are refused with words of their own, as a sentence's end after the parameter's name. */
  refused?: Readonly<Record<string, string>>;
}
/** A word or a name. */
export interface TextSpec extends SpecBase {
  kind: 'text';
  default: string;
  /** Allowed values, in words. */
  values: string;
}

/**
 * Buffers of such a kernel: `values` with the base in slot 0 and the models behind it, `stride` apart, `coefficients` as the
 * method lays them out, `out` for the result and, where the method counts, `counters` to add to.
 */
type ElementwiseKernel =
  | Kernel<'elements' | 'stride' | 'models', 'values' | 'coefficients' | 'out'>
  | Kernel<'elements' | 'stride' | 'models', 'values' | 'coefficients' | 'out' | 'counters'>;
