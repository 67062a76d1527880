import type { Spectrum } from './decomposition';
import type { LoraLikeness } from './report';

/** Singular values that are looked for and reported. */
export const SPECTRUM_VALUES = 64;
/** Values above it count, in absolute terms. */
const EFFECTIVE = 1e-5;
const MOST_OF_IT = 0.95;
/** A LoRA has a rank95 below this, and below a tenth of the smaller side. */
const LORA_RANK = 64;
const LORA_SHARE = 0.1;

/**
 * How much Δ looks like a LoRA, from its largest singular values and its exact norm, so that a truncated spectrum
 * suffices: the norm is the sum of all squares.
 *
 * @param squares ‖Δ‖², above 0
 */
export function likenessOf(
  { values, complete }: Spectrum,
  squares: number,
  smallerSide: number,
): Omit<LoraLikeness, 'exact'> {
  const found = smallestRank(values, MOST_OF_IT * (complete ? energy(values) : squares));
  const rank95 = Math.min(found ?? values.length + 1, smallerSide);
  const rank95IsBound = found === undefined && !complete;
  const effective = values.filter((s) => s > EFFECTIVE).length;
  return {
    singularValues: [...values.slice(0, SPECTRUM_VALUES)],
    effectiveRank: effective,
    effectiveRankIsBound: !complete && effective === values.length,
    rank95,
    rank95IsBound,
    potentialLora: !rank95IsBound && rank95 < LORA_RANK && rank95 < LORA_SHARE * smallerSide,
  };
}

/** Smallest k with Σ_{i≤k} σᵢ² ≥ wanted, or undefined where all of them do not reach it. */
export function smallestRank(values: Float64Array, wanted: number): number | undefined {
  let sum = 0;
  for (const [i, s] of values.entries()) {
    sum += s * s;
    if (sum >= wanted) return i + 1;
  }
  return undefined;
}

export function energy(values: Float64Array): number {
  return values.reduce((sum, s) => sum + s * s, 0);
}
