/** Changes of a stored weight that a merge is linear in. */
import { isWeightDtype } from '../formats/dtype';
import type { LowRank, TensorRef, TensorView } from '../inputs/tensor-view';
import type { MergeMethod } from '../merge/method';
import { methodById } from '../merge/methods';
import type { TensorPlan } from '../merge/plan/plan';
import { reciprocalOf } from '../merge/tensor/delta-measure';

/** W₀ + Σ cᵢ·ΔWᵢ, each ΔWᵢ as its factors, or as a tensor that is computed. */
export interface FactoredChange {
  origin: TensorRef;
  factors: readonly { coefficient: number; lowRank: LowRank }[];
  differences: readonly { coefficient: number; plan: TensorPlan }[];
}

/**
 * A linear map of a block whose merge is one stored weight plus plain LoRA updates with known coefficients; undefined for all
 * else.
 */
export function factoredChange(tensor: TensorPlan): FactoredChange | undefined {
  const { role } = tensor;
  if (role.layer === null || role.kind !== 'linear') return undefined;
  const change = linearChange(tensor, true);
  return change && change.differences.length === 0 && change.factors.length > 0 ? change : undefined;
}

/**
 * A matrix whose merge is one stored weight plus changes with known coefficients; undefined for all else.
 * @param factored whether plain LoRA updates stay factors; every other change is the difference to the stored weight, in BF16
 */
export function linearChange(tensor: TensorPlan, factored: boolean): FactoredChange | undefined {
  const { models, base, copy, method, shape } = tensor;
  const views = models.map(({ view }) => view);
  const origin = base?.origin ?? views[0]?.origin;
  if (copy || shape.length !== 2 || !origin || origin.rows || origin.derived || !isWeightDtype(origin.dtype))
    return undefined;
  if (base && (base.lowRank || base.addend)) return undefined;
  const coefficients = changeCoefficients(tensor, methodById.get(method)!);
  if (!coefficients) return undefined;
  const isBase = ({ origin: own, addend }: TensorView) =>
    own.folder === origin.folder && own.file === origin.file && own.begin === origin.begin && !addend;
  const factors: { coefficient: number; lowRank: LowRank }[] = [];
  const differences: { coefficient: number; plan: TensorPlan }[] = [];
  for (const [i, { id, view }] of models.entries()) {
    const coefficient = coefficients[i]!;
    const { lowRank } = view;
    if (isBase(view) && !lowRank) continue;
    if (isBase(view) && factored && lowRank && !lowRank.magnitude) factors.push({ coefficient, lowRank });
    else differences.push({ coefficient, plan: differenceOf(tensor, i, id, view, origin) });
  }
  return { origin, factors, differences };
}

/** What a contributor's tensor is beyond a stored one. */
function differenceOf(
  { base: _, ...tensor }: TensorPlan,
  index: number,
  id: string,
  view: TensorView,
  origin: TensorRef,
): TensorPlan {
  return {
    ...tensor,
    name: `${tensor.name}, difference ${index} of ${id}`,
    dtype: 'BF16',
    method: 'linear',
    parameters: { normalize: false },
    models: [
      { id, view, parameters: { weight: 1 } },
      { id: origin.folder, view: { origin, onBase: false }, parameters: { weight: -1 } },
    ],
  };
}

/** A change whose every contributor has come to weigh nothing: its base is copied. */
export function withoutEffect(
  { copy }: TensorPlan,
  was: FactoredChange | undefined,
): FactoredChange | undefined {
  if (!copy || !was || nameOf(copy) !== nameOf(was.origin)) return undefined;
  const { factors, differences } = was;
  return {
    ...was,
    factors: factors.map((factor) => ({ ...factor, coefficient: 0 })),
    differences: differences.map((difference) => ({ ...difference, coefficient: 0 })),
  };
}

/** What tells places of stored tensors apart. */
export function nameOf(...refs: readonly TensorRef[]): string {
  return refs.map(({ folder, file, begin, key }) => [folder, file, begin, key].join()).join(' ');
}

// Merges that are linear in the changes, as their coefficients.

/** Coefficients of full weights that leave this much of the base out, or more, are no merge of changes alone. */
const ROUNDING = 1e-9;

/**
 * Coefficients cᵢ where a tensor's merge is W₀ + Σ cᵢ·τᵢ whatever the values are, τᵢ being what contributor i adds to W₀;
 * undefined where it depends on the values, or keeps another share of W₀ than all of it.
 */
export function changeCoefficients(
  { models, parameters }: Pick<TensorPlan, 'models' | 'parameters'>,
  { compute }: MergeMethod,
): number[] | undefined {
  const own = models.map((model) => model.parameters);
  if (compute.kind === 'weights') {
    const coefficients = compute.coefficients(own, parameters);
    const sum = coefficients.reduce((a, b) => a + b, 0);
    return Math.abs(sum - 1) < ROUNDING ? coefficients : undefined;
  }
  if (compute.kind !== 'delta') return undefined;
  const preset = compute.preset(parameters);
  const { select, rescale, consensus, weights, normalize, lambda } = preset;
  if (select !== 'all' || rescale !== 'none' || consensus !== 'none' || weights === 'energy')
    return undefined;
  const given = own.map(({ weight }) => weight as number);
  const sum = given.reduce((a, b) => a + b, 0);
  const factor = lambda * (normalize ? reciprocalOf(preset, given.length, sum) : 1);
  return given.map((weight) => weight * factor);
}
