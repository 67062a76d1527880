/** Values that are each in range but do not go together: one answer for the plan and for the form. */
import type { MergeMethod, ParameterConflict } from './method';
import type { ResolvedParameters } from './plan/plan';

/** Weights that cancel cannot be divided by. mergekit's own threshold (`generalized_task_arithmetic.py`). */
const LEAST_WEIGHT_SUM = 1e-8;

/** Why the method refuses these values, all of them given, or undefined. */
export function methodConflict(
  method: MergeMethod,
  parameters: ResolvedParameters,
  models: readonly ResolvedParameters[],
): ParameterConflict | undefined {
  if (models.length === 0) return undefined;
  return weightsConflict(method, parameters, models) ?? method.validate?.(parameters, models);
}

/** Normalize divides by the sum of the weights, and so does what is solved. */
export function weightsConflict(
  method: MergeMethod,
  parameters: ResolvedParameters,
  models: readonly ResolvedParameters[],
): ParameterConflict | undefined {
  const { compute } = method;
  const isSolved = compute.kind === 'solved';
  if (parameters.normalize !== true && !isSolved) return undefined;
  const weights = models.map((m) => m.weight).filter((w) => typeof w === 'number');
  if (weights.length < models.length) return undefined;
  const sum = weights.reduce((total, w) => total + w, 0);
  // Where every weight is 0 a method on differences leaves the base as it is.
  const idle = compute.kind === 'delta' && weights.every((w) => w === 0);
  const byCount = compute.kind === 'delta' && compute.preset(parameters).divisor === 'count';
  if (idle || byCount || Math.abs(sum) >= LEAST_WEIGHT_SUM) return undefined;
  if (isSolved) return { reason: 'every weight is 0', remedy: 'Give a model a weight above 0.' };
  return {
    reason: 'the weights add up to 0, and normalize divides by their sum',
    remedy: 'Change a weight, or set normalize: false.',
  };
}

/** Whether a model's `density` of 0 leaves nothing of it. */
export function keepsNothing(method: MergeMethod, own: ResolvedParameters): boolean {
  const spec = method.modelParameters.density;
  return spec !== undefined && spec.inert !== true && own.density === 0;
}

/**
 * The density to recommend instead, where a model's `density` of 1 keeps every change of a method that trims: mergekit's
 * default. Undefined where something is dropped, or the method trims nothing.
 */
export function densityAdvised(method: MergeMethod, own: ResolvedParameters): number | undefined {
  const spec = method.modelParameters.density;
  if (spec?.kind !== 'number' || spec.inert === true) return undefined;
  return typeof own.density === 'number' && own.density >= 1 ? spec.recommended : undefined;
}
