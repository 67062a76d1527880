/**
 * The delta pipeline in f64 and plain loops: the truth that tests hold both engines against. The steps are those of the
 * methods' oracles, which sort where the pipeline counts; which of them a preset takes is decided here.
 */

import type { DeltaPreset } from '../method';
import { addUp, count, draws, largest, masked, matchL1 } from '../methods/oracle';

export interface OracleModel {
  id: string;
  weight: number;
  density: number;
  /** Task vector as stored values give it: W − W₀ rounded to f32, or the low-rank update. */
  tau: Float64Array;
}

/** Which elements of τ are kept: exactly k by |τ| with ties to the lowest index, or the counter-based draw. */
export function oracleMask(
  { id, density, tau }: OracleModel,
  select: DeltaPreset['select'],
  seed: number,
  tensor: string,
): Uint8Array {
  const n = tau.length;
  if (select === 'all' || density >= 1) return new Uint8Array(n).fill(1);
  if (select === 'top-k') return largest(tau, count(density, n));
  const least = Math.floor(density * 2 ** 32);
  return Uint8Array.from(draws({ seed, name: tensor }, id, n), (word) => (word < least ? 1 : 0));
}

/** W₀ + λ · combine(rescale(mask ⊙ τ)) in f64. */
export function oracleMerge(
  base: Float64Array,
  models: readonly OracleModel[],
  preset: DeltaPreset,
  seed: number,
  tensor: string,
): Float64Array {
  const kept = models.map((model) => {
    const { tau, density } = model;
    const part = masked(tau, oracleMask(model, preset.select, seed, tensor));
    if (density >= 1 || preset.rescale === 'none') return part;
    const factor = preset.rescale === '1/density' ? 1 / density : matchL1(tau, part);
    return part.map((t) => t * factor);
  });
  const { values } = addUp({ base }, kept, {
    weights: models.map(({ weight }) => weight),
    ...(preset.consensus === 'none' ? {} : { ballots: 'weighted' }),
    divide: !preset.normalize ? 'no' : preset.divisor === 'count' ? 'count' : 'weights',
    lambda: preset.lambda,
  });
  return values;
}
