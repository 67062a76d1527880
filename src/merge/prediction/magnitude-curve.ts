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
  const j = firstFrom(bins, (at) => counts[at + 1]! >= count);
  const share = (count - counts[j]!) / (counts[j + 1]! - counts[j]!);
  const high = edges[j]!;
  const low = edges[j + 1]!;
  const threshold = low === 0 ? 0 : high - share * (high - low); // the lowest bin holds the zeros
  const part = (share * meanSquare(threshold, high)) / meanSquare(low, high);
  return { threshold, energy: energies[j]! + (energies[j + 1]! - energies[j]!) * Math.min(1, part) };
}

/** How many elements lie at or above a magnitude, and their ‖·‖². */
export function above(curve: MagnitudeCurve, magnitude: number): { count: number; energy: number } {
  const { counts, energies, edges } = curve;
  const bins = counts.length - 1;
  if (bins === 0 || magnitude >= edges[0]!) return { count: 0, energy: 0 };
  if (magnitude <= edges[bins]!) return { count: counts[bins]!, energy: energies[bins]! };
  const j = firstFrom(bins, (at) => edges[at + 1]! <= magnitude);
  const share = (edges[j]! - magnitude) / (edges[j]! - edges[j + 1]!);
  const count = Math.round(counts[j]! + share * (counts[j + 1]! - counts[j]!));
  return { count, energy: largest(curve, count).energy };
}

/** The bin in which the `count` largest end, and how many elements lie above it and inside it. */
export function binAt(
  { counts, edges }: MagnitudeCurve,
  count: number,
): { low: number; high: number; above: number; inside: number } | undefined {
  const bins = counts.length - 1;
  if (bins <= 0 || count <= 0 || count >= counts[bins]!) return undefined;
  const j = firstFrom(bins, (at) => counts[at + 1]! >= count);
  return { low: edges[j + 1]!, high: edges[j]!, above: counts[j]!, inside: counts[j + 1]! - counts[j]! };
}

/** How many elements lie in the bin above a lower edge. */
export function insideBin({ counts, edges }: MagnitudeCurve, low: number): number {
  const bins = counts.length - 1;
  for (let j = 0; j < bins; j++) if (edges[j + 1] === low) return counts[j + 1]! - counts[j]!;
  return 0;
}

/** The share of all elements that lie in the bin of a magnitude: as many may lie on either side of it. */
export function binShare({ counts, edges, elements }: MagnitudeCurve, magnitude: number): number {
  const bins = counts.length - 1;
  if (bins <= 0 || magnitude >= edges[0]! || magnitude <= edges[bins]!) return 0;
  const j = firstFrom(bins, (at) => edges[at + 1]! <= magnitude);
  return (counts[j + 1]! - counts[j]!) / elements;
}

/**
 * ‖τ‖₁ over ‖·‖₁ of what is kept, values evenly spread inside a bin.
 * @param keptOf how many are kept of those between the `before`-th and the `after`-th largest
 */
export function l1Ratio(
  { counts, edges }: MagnitudeCurve,
  keptOf: (before: number, after: number) => number,
): number {
  let [all, part] = [0, 0];
  for (let j = 1; j < counts.length; j++) {
    const mean = (edges[j]! + edges[j - 1]!) / 2;
    all += (counts[j]! - counts[j - 1]!) * mean;
    part += keptOf(counts[j - 1]!, counts[j]!) * mean;
  }
  return part > 0 ? all / part : 1;
}

/** The first of `bins` bins that satisfies what all later ones satisfy too. */
function firstFrom(bins: number, holds: (bin: number) => boolean): number {
  let low = 0;
  let high = bins - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The curves of several tensors as one, for thresholds of a whole model: counts and energies over the union of bins.
 */
export function mergeCurves(curves: readonly MagnitudeCurve[]): MagnitudeCurve {
  const union = new Set<number>();
  for (const curve of curves) for (const edge of curve.edges) union.add(edge);
  const edges = Float64Array.from(union).sort((a, b) => b - a);
  const counts = new Float64Array(edges.length);
  const energies = new Float64Array(edges.length);
  let elements = 0;
  let square = 0;
  for (const curve of curves) {
    elements += curve.elements;
    square += curve.norm ** 2;
    let j = 0;
    for (let e = 0; e < edges.length; e++) {
      while (j + 1 < curve.edges.length && curve.edges[j + 1]! >= edges[e]!) j++;
      if (curve.edges[j]! < edges[e]!) continue; // all of this curve lies below
      counts[e]! += curve.counts[j]!;
      energies[e]! += curve.energies[j]!;
    }
  }
  return { elements, norm: Math.sqrt(square), edges, counts, energies };
}
