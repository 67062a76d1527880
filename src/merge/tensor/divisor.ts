import type { DeltaPreset } from '../method';

/** 1 / divisor of a set of agreeing models, from their weights. */
export function reciprocal(preset: DeltaPreset, agreeing: readonly number[]): number {
  if (preset.divisor === 'count') return 1 / Math.max(1, agreeing.length);
  const sum = agreeing.reduce((a, b) => a + b, 0);
  if (preset.floor !== undefined) return 1 / (sum === 0 ? 1 : Math.max(sum, preset.floor));
  // mergekit: an exact 0 (consensus) or |Σw| < 1e-8 (plain sum) counts as 1
  const vanishes = preset.consensus === 'none' ? Math.abs(sum) < 1e-8 : sum === 0;
  return vanishes ? 1 : 1 / sum;
}
