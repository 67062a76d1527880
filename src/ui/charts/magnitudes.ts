/** From the histogram of a task vector's magnitudes to bars and curves. Pure. */

import { largest, type MagnitudeCurve, magnitudeCurve } from '../../merge/prediction/magnitude-curve';
import type { DeltaStatistics } from '../../reports/delta-statistics';

interface MagnitudeBar {
  low: number;
  high: number;
  /** Elements of low ≤ |τ| < high. */
  count: number;
}

/** Histogram bins a bar takes together: a quarter of an octave. */
const BINS_PER_BAR = 2;
/** Bars from the largest |τ| down: ten octaves. What is smaller changes nothing. */
const BARS = 40;

/** Bars over |τ| on a logarithmic axis, smallest first, and how many elements lie below the first. */
export function magnitudeBars(curve: MagnitudeCurve): { bars: MagnitudeBar[]; below: number } {
  const { edges, counts, elements } = curve;
  const bars: MagnitudeBar[] = [];
  let j = 0;
  while (j + 1 < edges.length && bars.length < BARS) {
    const to = Math.min(j + BINS_PER_BAR, edges.length - 1);
    if (edges[to] === 0) break; // zeros have no place on a logarithmic axis
    bars.unshift({ low: edges[to]!, high: edges[j]!, count: counts[to]! - counts[j]! });
    j = to;
  }
  return { bars, below: elements - (counts[j] ?? 0) };
}

/** Share of a bar that lies at or above a threshold. */
export function shareAbove(bar: MagnitudeBar, threshold: number): number {
  if (threshold <= bar.low) return 1;
  return threshold >= bar.high ? 0 : (bar.high - threshold) / (bar.high - bar.low);
}

/** Kept energy over density, at equal steps from 0 to 1, when the largest are kept. */
export function energyCurve(curve: MagnitudeCurve, steps: number): { density: number; energy: number }[] {
  const square = curve.norm ** 2;
  return Array.from({ length: steps + 1 }, (_, i) => {
    const density = i / steps;
    const { energy } = largest(curve, density * curve.elements);
    return { density, energy: square > 0 ? Math.min(1, energy / square) : 0 };
  });
}

/** The curve of one contributor of a statistics by its id, or undefined where it leaves the tensor alone. */
export function curveOf(statistics: DeltaStatistics, id: string): MagnitudeCurve | undefined {
  const index = statistics.contributors.findIndex((c) => c.id === id);
  if (index < 0) return undefined;
  const curve = magnitudeCurve(statistics, index);
  return curve.norm > 0 ? curve : undefined;
}
