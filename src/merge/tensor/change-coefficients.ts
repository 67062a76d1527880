/** Merges that are linear in the changes, as their coefficients. */
import type { MergeMethod } from '../method';
import type { TensorPlan } from '../plan/plan';
import { reciprocalOf } from './delta-measure';

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
