import { scaleLinear, scaleLog } from 'd3-scale';
import { type KeyboardEvent, useState } from 'react';
import type { SearchPoint } from '../../reports/search';
import type { Objective } from '../state/search';
import { useNarrow } from '../studio-context';

const HEIGHT = 240;
const LEFT = 46;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 30;
const ORDER = 'order of measuring';

interface SearchPlotProps {
  objective: Objective;
  points: readonly SearchPoint[];
  best: number;
  chosen: number;
  /** What a setting is called. */
  titleOf(name: string): string;
  onChoose(index: number): void;
}

/** Every candidate by what it is compared by, over the order in which they were measured or over one of the settings. */
export function SearchPlot({ objective, points, best, chosen, titleOf, onChoose }: SearchPlotProps) {
  const [axis, setAxis] = useState(ORDER);
  const names = Object.keys(points[0]?.values ?? {});
  const along = names.includes(axis) ? axis : ORDER;
  const width = useNarrow() ? 400 : 640;
  const drawn = points.flatMap((point, i) => {
    const value = objective.of(point);
    return value === null ? [] : [{ i, value, x: along === ORDER ? i + 1 : point.values[along]! }];
  });
  const [least, most] = extent(drawn.map((p) => p.value));
  const x = scaleLinear()
    .domain(padded(extent(drawn.map((p) => p.x))))
    .range([LEFT, width - RIGHT]);
  // a merge that broke may be hundreds of times as perplexed: on a linear axis the others would be one line
  const wide = least > 0 && most > 4 * least;
  const y = (wide ? scaleLog() : scaleLinear())
    .domain(padded([least, most]))
    .nice()
    .range([HEIGHT - BOTTOM, TOP]);
  const ticks = y.ticks(5).filter((tick) => !wide || /^[125]0*$/.test(String(tick)));
  const improved = drawn.filter((p, k) =>
    drawn.slice(0, k).every((q) => objective.isBetter(points[p.i]!, points[q.i]!)),
  );

  const onKeyDown = (event: KeyboardEvent) => {
    const order = [...drawn].sort((a, b) => a.x - b.x).map((p) => p.i);
    const at = order.indexOf(chosen);
    const next = new Map([
      ['ArrowLeft', order[at - 1]],
      ['ArrowRight', order[at + 1]],
      ['Home', order[0]],
      ['End', order.at(-1)],
    ]);
    if (!next.has(event.key)) return;
    event.preventDefault();
    const index = next.get(event.key);
    if (index !== undefined) onChoose(index);
  };
  const words = (i: number) => `candidate ${i + 1}: ${objective.text(points[i]!)}`;
  const placeOf = (i: number) => drawn.find((p) => p.i === i);
  return (
    <>
      <label className="labelled">
        <span>Along</span>
        <select className="select" value={along} onChange={({ target }) => setAxis(target.value)}>
          {[ORDER, ...names].map((name) => (
            <option key={name} value={name}>
              {name === ORDER ? name : titleOf(name)}
            </option>
          ))}
        </select>
      </label>
      <div
        className="sweep-plot"
        role="slider"
        tabIndex={0}
        aria-label="Candidate of the search; left and right go through them"
        aria-valuemin={1}
        aria-valuemax={points.length}
        aria-valuenow={chosen + 1}
        aria-valuetext={`${words(chosen)}${chosen === best ? ', the best' : ''}`}
        onKeyDown={onKeyDown}
      >
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
          {ticks.map((tick) => (
            <g key={tick}>
              <line className="sweep-grid" x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
              <text className="sweep-tick" x={LEFT - 6} y={y(tick)} dy="0.32em" textAnchor="end">
                {tick}
              </text>
            </g>
          ))}
          {x.ticks(6).map((tick) => (
            <text key={tick} className="sweep-tick" x={x(tick)} y={HEIGHT - BOTTOM + 14} textAnchor="middle">
              {tick}
            </text>
          ))}
          <text className="sweep-tick" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 4} textAnchor="middle">
            {along === ORDER ? along : titleOf(along)}
          </text>
          {along === ORDER ? (
            <polyline
              className="sweep-line"
              stroke="var(--model-0)"
              points={improved.map((p) => `${x(p.x)},${y(p.value)}`).join(' ')}
            />
          ) : null}
          {drawn.map((p) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: the figure around it takes the keys.
            <circle
              key={p.i}
              className="sweep-point"
              fill="var(--model-0)"
              cx={x(p.x)}
              cy={y(p.value)}
              r={3.5}
              onClick={() => onChoose(p.i)}
            >
              <title>{words(p.i)}</title>
            </circle>
          ))}
          {[best, chosen].flatMap((i, k) => {
            const place = placeOf(i);
            const [className, r] = k === 0 ? ['sweep-best', 8] : ['sweep-chosen', 5.5];
            return place ? (
              <circle key={className} className={`${className}`} cx={x(place.x)} cy={y(place.value)} r={r} />
            ) : (
              []
            );
          })}
        </svg>
      </div>
    </>
  );
}

function extent(values: readonly number[]): [number, number] {
  return [Math.min(...values), Math.max(...values)];
}

/** Bounds that are not the same. */
function padded([least, most]: [number, number]): [number, number] {
  if (most > least) return [least, most];
  return least === 0 ? [-1, 1] : [least - 0.1 * Math.abs(least), least + 0.1 * Math.abs(least)];
}
