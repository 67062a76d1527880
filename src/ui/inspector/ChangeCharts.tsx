import { scaleLinear, scaleLog } from 'd3-scale';
import { formatReal } from '../../formats/quantity';
import { type MagnitudeCurve, magnitudeCurve } from '../../merge/prediction/magnitude-curve';
import type { DeltaStatistics } from '../../reports/delta-statistics';
import type { ContributorReport } from '../../reports/job';
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

const WIDTH = 256;
const HEIGHT = 52;

interface ChangeChartsProps {
  statistics: DeltaStatistics;
  numbers: ContributorReport;
  contributor: Contributor;
}

/** One contributor's change in one tensor: the sizes of its values. */
export function ChangeCharts({ statistics, numbers, contributor }: ChangeChartsProps) {
  const curve = curveOf(statistics, numbers.id);
  if (!curve) return null;
  const hue = modelColor(contributor.color);
  const { bars } = magnitudeBars(curve);
  const first = bars[0];
  const last = bars.at(-1);
  if (!first || !last) return null;
  const x = scaleLog().domain([first.low, last.high]).range([0, WIDTH]);
  const y = scaleLinear()
    .domain([0, Math.max(...bars.map((b) => b.count))])
    .range([0, HEIGHT]);
  const { threshold } = numbers;
  return (
    <div className="stack change-charts">
      <figure>
        <figcaption className="small quiet">Size of its changes, |τ|</figcaption>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          role="img"
          aria-label={`Histogram of the changes of ${contributor.label}, from ${formatReal(first.low)} to ${formatReal(last.high)}${threshold > 0 ? `; what is below ${formatReal(threshold)} is dropped` : ''}`}
        >
          {bars.map((bar) => {
            const left = x(bar.low);
            const width = Math.max(0.5, x(bar.high) - left - 0.8);
            const height = y(bar.count);
            const keptShare = threshold > 0 ? shareAbove(bar, threshold) : 1;
            return (
              <g key={bar.low} fill={hue}>
                <rect x={left} y={HEIGHT - height} width={width} height={height} opacity={0.3} />
                <rect
                  x={left + width * (1 - keptShare)}
                  y={HEIGHT - height}
                  width={width * keptShare}
                  height={height}
                />
              </g>
            );
          })}
          {threshold > 0 ? (
            <line className="chart-cut" x1={x(threshold)} x2={x(threshold)} y1={0} y2={HEIGHT} />
          ) : null}
        </svg>
        <div className="axis">
          <span>{formatReal(first.low)}</span>
          <span>{formatReal(last.high)}</span>
        </div>
      </figure>
    </div>
  );
}
