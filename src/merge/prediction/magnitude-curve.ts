/**
 * Threshold and kept energy for any density, from a histogram of |τ|. Within a bin (an eighth of an octave) values count as
 * evenly spread; counts at bin edges are exact.
 */
import type { DeltaStatistics } from '../../reports/delta-statistics';
import { keyToMagnitude } from '../tensor/radix-select';

/** Keys of the histogram's bins are the upper 11 of 31 bits: see DIGITS in radix-select. */
const BIN_SHIFT = 20;
/** The first bin of infinities and NaN, which have no size; statistics count them apart. */
const NON_FINITE_BIN = 0xff << 3;

/** One contributor's |τ| in one tensor, from the largest down. */
export interface MagnitudeCurve {
  elements: number;
  /** ‖τ‖₂ */
  norm: number;
  /** Upper edges of the bins, falling, and the lower edge of the last: bins + 1 numbers, a part of the table of all. */
  edges: Float64Array;
  /** Elements of |τ| at or above edge j. */
  counts: Float64Array;
  /** ‖·‖² of those elements. */
  energies: Float64Array;
}

/** The curve of contributor `index`. */
export function magnitudeCurve(statistics: DeltaStatistics, index: number): MagnitudeCurve {
  const { first, counts } = statistics.contributors[index]!.histogram;
  const bins = Math.max(0, Math.min(counts.length, NON_FINITE_BIN - first));
  // of thousands of tensors at once: neither edges nor mean squares are worked out again
  const top = NON_FINITE_BIN - (first + bins);
  const edges = EDGES.subarray(top, top + bins + 1);
  const above = new Float64Array(bins + 1);
  const energies = new Float64Array(bins + 1);
  for (let j = 0; j < bins; j++) {
    const count = counts[bins - 1 - j]!;
    above[j + 1] = above[j]! + count;
    energies[j + 1] = energies[j]! + (count > 0 ? count * MEAN_SQUARES[top + j]! : 0);
  }
  const square = statistics.products[index + 1]![index + 1]!;
  const sum = energies[bins]!;
  if (sum > 0) for (let j = 0; j <= bins; j++) energies[j]! *= square / sum;
  return { elements: statistics.elements, norm: Math.sqrt(square), edges, counts: above, energies };
}

/** Lower edges of all finite bins and the upper one of the first, falling, and the mean square of each bin. */
const EDGES = Float64Array.from({ length: NON_FINITE_BIN + 1 }, (_, j) =>
  keyToMagnitude((NON_FINITE_BIN - j) << BIN_SHIFT),
);
const MEAN_SQUARES = EDGES.subarray(1).map((low, j) => meanSquare(low, EDGES[j]!));

/** Mean of x² for x evenly spread over [low, high]. */
function meanSquare(low: number, high: number): number {
  return (low * low + low * high + high * high) / 3;
}

/** Where the `count` largest end: the smallest |τ| among them, and their ‖·‖². */
export function largest(curve: MagnitudeCurve, count: number): { threshold: number; energy: number } {
  if (count <= 0) return { threshold: 0, energy: 0 };
  const { counts, energies, edges } = curve;
  const bins = counts.length - 1;
  if (bins === 0 || count >= counts[bins]!) return { threshold: edges[bins]!, energy: energies[bins]! };
  let [j, last] = [0, bins - 1];
  while (j < last) {
    const middle = (j + last) >> 1;
    if (counts[middle + 1]! >= count) last = middle;
    else j = middle + 1;
  }
  const share = (count - counts[j]!) / (counts[j + 1]! - counts[j]!);
  const high = edges[j]!;
  const low = edges[j + 1]!;
  const threshold = low === 0 ? 0 : high - share * (high - low); // the lowest bin holds the zeros
  const part = (share * meanSquare(threshold, high)) / meanSquare(low, high);
  return { threshold, energy: energies[j]! + (energies[j + 1]! - energies[j]!) * Math.min(1, part) };
}

/**
 * Sums over what is kept, values evenly spread inside a bin: its ‖·‖², the same where every value is divided by its chance to be
 * kept, and ‖τ‖₁ over its ‖·‖₁.
 * @param keptOf how many are kept of those between the `before`-th and the `after`-th largest
 */
export function keptSums(
  { counts, edges, energies }: MagnitudeCurve,
  keptOf: (before: number, after: number) => number,
): { energy: number; rescaled: number; l1: number } {
  let [energy, rescaled, all, part] = [0, 0, 0, 0];
  for (let j = 1; j < counts.length; j++) {
    const count = counts[j]! - counts[j - 1]!;
    if (count === 0) continue;
    const share = keptOf(counts[j - 1]!, counts[j]!) / count;
    const own = energies[j]! - energies[j - 1]!;
    const mean = (edges[j]! + edges[j - 1]!) / 2;
    energy += share * own;
    rescaled += share > 0 ? own / share : 0;
    all += count * mean;
    part += share * count * mean;
  }
  return { energy, rescaled, l1: part > 0 ? all / part : 1 };
}
