import type { CSSProperties } from 'react';
import { formatReal } from '../../formats/quantity';
import { type MagnitudeCurve, magnitudeCurve } from '../../merge/prediction/magnitude-curve';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ContributorReport } from '../../reports/job';
import { BarStrip } from '../charts/LinePlot';
import { modelColor } from '../parts/Section';
import type { Contributor } from '../state/runs';

// From the histogram of a task vector's magnitudes to bars and curves. Pure.

interface MagnitudeBar {
  low: number;
  high: number;
  /** Elements of low ≤ |τ| < high. */
  count: number;
}

/** Histogram bins a bar takes together: a quarter of an octave. */
const BINS_PER_BAR = 2;
/** Bars from the largest |τ| down: ten octaves. Smaller changes have no effect. */
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

/** The curve of one contributor of a statistics by its id, or undefined where it leaves the tensor alone. */
export function curveOf(statistics: DeltaStatistics, id: string): MagnitudeCurve | undefined {
  const index = statistics.contributors.findIndex((c) => c.id === id);
  if (index < 0) return undefined;
  const curve = magnitudeCurve(statistics, index);
  return curve.norm > 0 ? curve : undefined;
}

interface ChangeChartsProps {
  statistics: DeltaStatistics;
  numbers: ContributorReport;
  contributor: Contributor;
}

/** One contributor's change in one tensor: the sizes of its values. */
export function ChangeCharts({ statistics, numbers, contributor }: ChangeChartsProps) {
  const curve = curveOf(statistics, numbers.id);
  if (!curve) return null;
  const { bars } = magnitudeBars(curve);
  const [first, last] = [bars[0], bars.at(-1)];
  if (!first || !last) return null;
  const { threshold } = numbers;
  const most = Math.max(...bars.map(({ count }) => count));
  const solid = (i: number) => shareAbove(bars[i]!, threshold);
  const cut = bars.findIndex((_, i) => solid(i) > 0);
  const ends = [first.low, last.high].map(formatReal);
  return (
    <div className="stack" style={{ '--hue': modelColor(contributor.color) } as CSSProperties}>
      <span className="small quiet">Size of its changes, |τ|</span>
      <BarStrip
        heights={bars.map(({ count }) => count / most)}
        solid={solid}
        cut={threshold > 0 && cut >= 0 ? cut + 1 - solid(cut) : undefined}
        label={`Histogram of the changes of ${contributor.label}, from ${ends[0]} to ${ends[1]}${threshold > 0 ? `; what is below ${formatReal(threshold)} is dropped` : ''}`}
        axis={ends}
      />
    </div>
  );
}
