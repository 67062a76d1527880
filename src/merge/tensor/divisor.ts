import type { DeltaPreset } from '../method';

/** 1 / divisor of a set of agreeing models, from their weights. */
export function reciprocal(preset: DeltaPreset, agreeing: readonly number[]): number {
  return reciprocalOf(
    preset,
    agreeing.length,
    agreeing.reduce((a, b) => a + b, 0),
  );
}

/** The same from how many agree and the sum of their weights. */
export function reciprocalOf(preset: DeltaPreset, count: number, sum: number): number {
  if (preset.divisor === 'count') return 1 / Math.max(1, count);
  if (preset.floor !== undefined) return 1 / (sum === 0 ? 1 : Math.max(sum, preset.floor));
  // mergekit: an exact 0 (consensus) or |Σw| < 1e-8 (plain sum) counts as 1
  const vanishes = preset.consensus === 'none' ? Math.abs(sum) < 1e-8 : sum === 0;
  return vanishes ? 1 : 1 / sum;
}
