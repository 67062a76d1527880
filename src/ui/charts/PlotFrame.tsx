/** Parts shared by plots of measured points: axes, points and rings, and the keys that go from point to point. */
import { type ScaleContinuousNumeric, scaleLinear, scaleLog } from 'd3-scale';
import type { KeyboardEvent, ReactNode } from 'react';

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

/** A logarithmic axis has ticks at every digit of every decade: a few of them are enough. */
export function fewTicks(scale: PlotScale, wide: boolean): number[] {
  return scale.ticks(5).filter((tick) => !wide || /^[125]0*$/.test(String(tick)));
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
  className?: string;
  fill?: string;
  onChoose?: () => void;
}

export function PlotPoint({ x, y, words, className = '', fill, onChoose }: PlotPointProps) {
  return (
    <circle
      className={`plot-point ${className}`.trimEnd()}
      cx={x}
      cy={y}
      r={3.5}
      {...(fill ? { fill } : {})}
      {...(onChoose ? { onClick: onChoose } : {})}
    >
      <title>{words}</title>
    </circle>
  );
}

/** Around the best point, and around the chosen one. */
export function PlotRing({ x, y, around }: { x: number; y: number; around: 'best' | 'chosen' }) {
  return <circle className="plot-ring" data-around={around} cx={x} cy={y} r={around === 'best' ? 8 : 5.5} />;
}

interface PlotSliderProps<T> {
  room: PlotRoom;
  label: string;
  min: number;
  max: number;
  now: number;
  /** Description of the chosen point. */
  words: string;
  className?: string;
  /** The points that keys go to; a key at the end of its way does nothing. */
  keys: ReadonlyMap<string, T | undefined>;
  onChoose(point: T): void;
  children: ReactNode;
}

/** A drawing in which one point is chosen. */
export function PlotSlider<T>(props: PlotSliderProps<T>) {
  const { room, label, min, max, now, words, className = '', keys, onChoose, children } = props;
  const onKeyDown = (event: KeyboardEvent) => {
    if (!keys.has(event.key)) return;
    event.preventDefault();
    const point = keys.get(event.key);
    if (point !== undefined) onChoose(point);
  };
  return (
    <div
      className={`plot ${className}`.trimEnd()}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={min}
      aria-valuemax={max}
      aria-valuenow={now}
      aria-valuetext={words}
      onKeyDown={onKeyDown}
    >
      <svg className="plot-drawing" viewBox={`0 0 ${room.width} ${room.height}`} aria-hidden="true">
        {children}
      </svg>
    </div>
  );
}
