/** Rank of each module of an adapter: the number of its singular values. */

import type { RankChoice } from '../../reports/lora';
import { smallestRank } from '../difference/likeness';

/** Singular values to look for in a matrix with this smaller side. */
export function wantedValues(choice: RankChoice, smallerSide: number, maxRank: number): number {
  return Math.min(smallerSide, choice.kind === 'rank' ? choice.rank : maxRank);
}

/**
 * The rank of one module alone, at least 1; with `bytes` all that may be wanted. `reached` is false where the
 * largest rank came before the energy asked for.
 *
 * @param values descending, above 0
 * @param squares ‖Δ‖², the exact sum of all σ²
 */
export function rankOf(
  choice: RankChoice,
  values: Float64Array,
  squares: number,
  most: number,
): { rank: number; reached: boolean } {
  const limit = Math.min(values.length, most);
  if (choice.kind === 'energy') {
    // sums in f32 leave the last digits of ‖Δ‖² open; a whole spectrum that falls short by so little has it all
    const found = smallestRank(values, choice.share * squares * (1 - 1e-6));
    return {
      rank: Math.max(1, Math.min(found ?? limit, limit)),
      reached: found !== undefined && found <= limit,
    };
  }
  if (choice.kind === 'cutoff') {
    const above = values.filter((s) => s >= choice.ratio * values[0]!).length;
    return { rank: Math.max(1, Math.min(above, limit)), reached: above <= limit };
  }
  return { rank: limit, reached: true };
}

/**
 * Ranks that capture most of Σσ² within a number of bytes: the values of all modules are taken in the order of σ² per
 * byte, each module from its largest on, as long as they fit.
 *
 * @param modules singular values, descending, and the bytes one rank costs
 * @returns a rank per module; 0 where the budget has no room
 */
export function ranksWithin(
  budget: number,
  modules: readonly { values: Float64Array; bytesPerRank: number }[],
): number[] {
  const steps = modules.flatMap(({ values, bytesPerRank }, module) =>
    Array.from(values, (s, i) => ({ module, rank: i + 1, gain: (s * s) / bytesPerRank })),
  );
  steps.sort((a, b) => b.gain - a.gain || a.rank - b.rank || a.module - b.module);
  const ranks = modules.map(() => 0);
  let left = budget;
  for (const { module, rank } of steps) {
    const { bytesPerRank } = modules[module]!;
    if (rank !== ranks[module]! + 1 || bytesPerRank > left) continue;
    ranks[module] = rank;
    left -= bytesPerRank;
  }
  return ranks;
}
