/** Parts shared by plots of measured points: axes, points and rings. */
import { type ScaleContinuousNumeric, scaleLinear, scaleLog } from 'd3-scale';

/** Size of a drawing, and the margins of its axes. */
export interface PlotRoom {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  /** Between the name of the axis and the lower edge. */
  foot: number;
}

type PlotScale = ScaleContinuousNumeric<number, number>;

export function acrossScale({ left, width, right }: PlotRoom, domain: readonly [number, number]): PlotScale {
  return scaleLinear()
    .domain(domain)
    .range([left, width - right]);
}

/** @param wide logarithmic: a merge that broke may be hundreds of times as perplexed, and the others would be one line */
export function upwardScale(
  { height, bottom, top }: PlotRoom,
  domain: readonly [number, number],
  wide: boolean,
  ticks?: number,
): PlotScale {
  const range = [height - bottom, top];
  return wide
    ? scaleLog().domain(domain).nice().range(range)
    : scaleLinear().domain(domain).nice(ticks).range(range);
}

interface PlotAxesProps {
  room: PlotRoom;
  x: PlotScale;
  y: PlotScale;
  /** About how many numbers stand along. */
  along: number;
  up: readonly number[];
  format?: (tick: number) => string;
  title: string;
}

export function PlotAxes({ room, x, y, along, up, format = String, title }: PlotAxesProps) {
  const { width, height, left, right, bottom, foot } = room;
  return (
    <>
      {up.map((tick) => (
        <g key={tick}>
          <line className="plot-grid" x1={left} x2={width - right} y1={y(tick)} y2={y(tick)} />
          <text className="plot-tick" x={left - 6} y={y(tick)} dy="0.32em" textAnchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      {x.ticks(along).map((tick) => (
        <text key={tick} className="plot-tick" x={x(tick)} y={height - bottom + 14} textAnchor="middle">
          {tick}
        </text>
      ))}
      <text className="plot-tick" x={(left + width - right) / 2} y={height - foot} textAnchor="middle">
        {title}
      </text>
    </>
  );
}

interface PlotPointProps {
  x: number;
  y: number;
  words: string;
}

export function PlotPoint({ x, y, words }: PlotPointProps) {
  return (
    <circle className="plot-point" cx={x} cy={y} r={3.5} fill="var(--accent)">
      <title>{words}</title>
    </circle>
  );
}

/** Around the point that was chosen. */
export function PlotRing({ x, y }: { x: number; y: number }) {
  return <circle className="plot-ring" cx={x} cy={y} r={8} />;
}
