/** A line through measured points, with axes, and a ring around the best. */
import { scaleLinear, scaleLog } from 'd3-scale';

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
  best: PlotPoint;
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
      <circle className="plot-ring" cx={x(best.x)} cy={y(best.y)} r={8} />
    </svg>
  );
}
