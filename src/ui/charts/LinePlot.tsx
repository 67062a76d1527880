import { scaleLinear, scaleLog } from 'd3-scale';
import { formatReal } from '../../formats/quantity';

// A line through measured points, with axes, and a ring around the best.

interface LinePlotProps {
  width: number;
  height: number;
  /** Room for the numbers on the left. */
  left: number;
  points: readonly PlotPoint[];
  /** Ends of the axis along, and of the numbers upward. */
  along: readonly [number, number];
  upward: readonly [number, number];
  /** Upward by the logarithm: a merge that broke may be hundreds of times as perplexed, and the others would be one line. */
  wide?: boolean;
  best: PlotPoint | undefined;
  /** Name of the axis along. */
  title: string;
  label: string;
}

interface PlotPoint {
  x: number;
  y: number;
  words: string;
}

/** About how many numbers stand upward, and the margins of the axes. */
const TICKS = 4;
const [RIGHT, TOP, BOTTOM] = [20, 22, 32];
/** Pixels along for a number. */
const APART = 90;

export function LinePlot(props: LinePlotProps) {
  const { width, height, left, points, along, upward, wide = false, best, title, label } = props;
  const room = width - left - RIGHT;
  const x = scaleLinear()
    .domain(along)
    .range([left, width - RIGHT]);
  const y = (wide ? scaleLog().domain(upward).nice() : scaleLinear().domain(upward).nice(TICKS)).range([
    height - BOTTOM,
    TOP,
  ]);
  const format = y.tickFormat(TICKS);
  return (
    <svg className="plot-drawing" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {y.ticks(TICKS).map((tick) => (
        <g key={tick}>
          <line className="plot-grid" x1={left} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
          <text className="plot-tick" x={left - 6} y={y(tick)} dy="0.32em" textAnchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      {x.ticks(room / APART).map((tick) => (
        <text key={tick} className="plot-tick" x={x(tick)} y={height - BOTTOM + 14} textAnchor="middle">
          {tick}
        </text>
      ))}
      <text className="plot-tick" x={left + room / 2} y={height - 3} textAnchor="middle">
        {title}
      </text>
      <polyline className="plot-line" points={points.map((at) => `${x(at.x)},${y(at.y)}`).join(' ')} />
      {points.map((at) => (
        <circle key={at.x} className="plot-point" cx={x(at.x)} cy={y(at.y)} r={3.5}>
          <title>{at.words}</title>
        </circle>
      ))}
      {best ? <circle className="plot-ring" cx={x(best.x)} cy={y(best.y)} r={8} /> : null}
    </svg>
  );
}

interface SpectrumPlotProps {
  /** Descending. */
  singularValues: readonly number[];
  /** Up to here the spectrum is drawn solid: what a rank keeps, or what holds 95 % of the change. */
  mark: number;
  /** `rank 8`, `95 % of the change`. */
  markWords: string;
}

/** Singular values as bars on a logarithmic axis, the first `mark` of them solid. */
export function SpectrumPlot({ singularValues, mark, markWords }: SpectrumPlotProps) {
  const first = singularValues[0] ?? 0;
  const shown = singularValues.filter((v) => v > first * 1e-7);
  const last = shown.at(-1) ?? 0;
  if (shown.length === 0) return <p className="small quiet">The change is zero: it has no directions.</p>;
  const y = scaleLog()
    .domain([Math.min(last, first / 10), first])
    .range([1 / 24, 1]);
  return (
    <BarStrip
      heights={shown.map(y)}
      solid={(i) => Number(i < mark)}
      cut={mark < shown.length ? mark : undefined}
      label={`Spectrum: ${shown.length} singular values from ${formatReal(first)} down to ${formatReal(last)}, on a logarithmic scale; ${markWords} at ${mark}`}
      axis={[`σ₁ ${formatReal(first)}`, markWords, `σ${subscript(shown.length)} ${formatReal(last)}`]}
    />
  );
}

interface BarStripProps {
  /** Shares of the height of the strip. */
  heights: readonly number[];
  /** How much of a bar is drawn solid, from its right; absent: all of it. */
  solid?(bar: number): number;
  /** Where a line is drawn across, in bars. */
  cut?: number | undefined;
  label: string;
  /** Words below, from end to end. */
  axis: readonly string[];
}

/** Bars side by side over all of the width. */
export function BarStrip({ heights, solid = () => 1, cut, label, axis }: BarStripProps) {
  return (
    <figure className="bar-strip">
      <svg viewBox={`0 0 ${heights.length} 1`} preserveAspectRatio="none" role="img" aria-label={label}>
        {heights.map((height, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its place.
          <g key={i}>
            <rect className="bar-rest" x={i + 0.05} width={0.9} y={1 - height} height={height} />
            <rect
              className="bar-kept"
              x={i + 0.95 - 0.9 * solid(i)}
              width={0.9 * solid(i)}
              y={1 - height}
              height={height}
            />
          </g>
        ))}
        {cut === undefined ? null : <line className="chart-cut" x1={cut} x2={cut} y1={0} y2={1} />}
      </svg>
      <div className="axis" aria-hidden="true">
        {axis.map((words) => (
          <span key={words}>{words}</span>
        ))}
      </div>
    </figure>
  );
}

function subscript(n: number): string {
  return [...String(n)].map((digit) => '₀₁₂₃₄₅₆₇₈₉'[Number(digit)]).join('');
}
