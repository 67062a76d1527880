/** Rank of each module of an adapter: the number of its singular values. */

import { AmalgamError } from '../../errors';
import { type WeightDtype, weightBytes } from '../../formats/dtype';
import { counted } from '../../formats/quantity';
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
 * The rank of each module as it was found, or within a byte budget: the values of all modules are then taken in the order of σ²
 * per byte, each module from its largest on, as long as they fit; 0 where there is no room.
 *
 * @param modules singular values, descending, and the rank without a budget
 * @param whole tensors that are carried whole, and their bytes
 * @throws AmalgamError `LimitExceeded` for a budget without room for any
 */
export function ranksOf(
  choice: RankChoice | null,
  modules: readonly { values: Float64Array; rank: number; inputs: number; outputs: number }[],
  dtype: WeightDtype,
  whole = { tensors: 0, bytes: 0 },
): number[] {
  if (choice?.kind !== 'bytes') return modules.map(({ rank }) => rank);
  const costs = modules.map(({ inputs, outputs }) => (inputs + outputs) * weightBytes(dtype));
  const steps = modules.flatMap(({ values, rank: most }, module) =>
    Array.from(values.slice(0, most), (s, i) => ({ module, rank: i + 1, gain: (s * s) / costs[module]! })),
  );
  steps.sort((a, b) => b.gain - a.gain || a.rank - b.rank || a.module - b.module);
  const ranks = modules.map(() => 0);
  let left = choice.bytes - whole.bytes;
  for (const { module, rank } of steps) {
    if (rank !== ranks[module]! + 1 || costs[module]! > left) continue;
    ranks[module] = rank;
    left -= costs[module]!;
  }
  if (ranks.some((rank) => rank > 0)) return ranks;
  const { tensors, bytes } = whole;
  throw new AmalgamError(
    'LimitExceeded',
    `${choice.bytes} bytes leave no room for factors${bytes > 0 ? `: ${counted(tensors, 'tensor')} carried whole ${tensors === 1 ? 'takes' : 'take'} ${bytes} bytes` : ''}.`,
    'Allow more bytes, choose fewer modules, or leave embeddings and vectors out.',
  );
}
