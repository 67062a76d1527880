import { scaleLinear, scaleLog } from 'd3-scale';
import type { KeyboardEvent } from 'react';
import { useNarrow } from '../studio-context';
import { type SweepCurve, type SweepPlace, shortTitle } from './density-sweep';

const HEIGHT = 260;
const LEFT = 46;
const RIGHT = 118;
const TOP = 12;
const BOTTOM = 30;

/** Curves are told apart by shape as well as by colour. */
const DASHES = ['none', '6 3', '2 3', '8 3 2 3', '1 4', '10 4'];

interface SweepPlotProps {
  curves: readonly SweepCurve[];
  best: SweepPlace;
  chosen: SweepPlace;
  /** Perplexity of the base on the same texts. */
  base: number | null;
  onChoose(place: SweepPlace): void;
}

/** Perplexity over density, one line per method. The arrow keys go from point to point. */
export function SweepPlot({ curves, best, chosen, base, onChoose }: SweepPlotProps) {
  // drawn for the width it gets, so that its words keep their size
  const width = useNarrow() ? 400 : 640;
  const lines = curves
    .map(({ method, points }, i) => ({
      method,
      colour: `var(--model-${i % 8})`,
      dash: DASHES[i % DASHES.length],
      places: points.flatMap((p): SweepPlace[] =>
        p.perplexity === null ? [] : [{ method, density: p.density, perplexity: p.perplexity }],
      ),
    }))
    .filter(({ places }) => places.length > 0);
  const all = lines.flatMap((line) => line.places);
  const values = [...all.map((p) => p.perplexity), ...(base === null ? [] : [base])];
  const x = scaleLinear()
    .domain([0, 1])
    .range([LEFT, width - RIGHT]);
  const least = Math.min(...values);
  const most = Math.max(...values);
  // a merge that broke may be hundreds of times as perplexed: on a linear axis the others would be one line
  const bounds: [number, number] = most > least ? [least, most] : [least * 0.9, least * 1.1];
  const y = (most > 4 * least ? scaleLog() : scaleLinear())
    .domain(bounds)
    .nice()
    .range([HEIGHT - BOTTOM, TOP]);
  // a logarithmic axis has ticks at every digit of every decade: a few of them are enough
  const ticks = y.ticks(5).filter((tick) => most <= 4 * least || /^[125]0*$/.test(String(tick)));
  const labels = spread(
    lines.map(({ places }) => y(places.at(-1)!.perplexity)),
    15,
    TOP + 4,
    HEIGHT - BOTTOM,
  );

  const onKeyDown = (event: KeyboardEvent) => {
    const row = Math.max(
      0,
      lines.findIndex((l) => l.method.id === chosen.method.id),
    );
    const places = lines[row]?.places ?? [];
    const at = places.findIndex((p) => p.density === chosen.density);
    const near = (places: readonly SweepPlace[]) =>
      [...places].sort(
        (a, b) => Math.abs(a.density - chosen.density) - Math.abs(b.density - chosen.density),
      )[0];
    const next = new Map([
      ['ArrowLeft', places[at - 1]],
      ['ArrowRight', places[at + 1]],
      ['ArrowUp', near(lines[row - 1]?.places ?? [])],
      ['ArrowDown', near(lines[row + 1]?.places ?? [])],
      ['Home', places[0]],
      ['End', places.at(-1)],
    ]);
    if (!next.has(event.key)) return;
    const place = next.get(event.key);
    event.preventDefault();
    if (place) onChoose(place);
  };
  const words = (p: SweepPlace) =>
    `${shortTitle(p.method)}, density ${p.density}: perplexity ${p.perplexity.toFixed(3)}`;
  return (
    <div
      className="sweep-plot"
      role="slider"
      tabIndex={0}
      aria-label="Point of the density sweep; left and right change the density, up and down the method"
      aria-valuemin={0}
      aria-valuemax={1}
      aria-valuenow={chosen.density}
      aria-valuetext={`${words(chosen)}${isSame(chosen, best) ? ', the best' : ''}`}
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
        {x.ticks(5).map((tick) => (
          <text key={tick} className="sweep-tick" x={x(tick)} y={HEIGHT - BOTTOM + 14} textAnchor="middle">
            {tick}
          </text>
        ))}
        <text className="sweep-tick" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 2} textAnchor="middle">
          density
        </text>
        {base === null ? null : (
          <>
            <line className="sweep-base" x1={LEFT} x2={width - RIGHT} y1={y(base)} y2={y(base)} />
            <text className="sweep-tick" x={LEFT + 4} y={y(base) - 4}>
              base {base.toFixed(3)}
            </text>
          </>
        )}
        {lines.map(({ method, colour, dash, places }, i) => (
          <g key={method.id} stroke={colour} fill={colour}>
            <polyline
              className="sweep-line"
              strokeDasharray={dash}
              points={places.map((p) => `${x(p.density)},${y(p.perplexity)}`).join(' ')}
            />
            {places.map((p) => (
              // biome-ignore lint/a11y/noStaticElementInteractions: the figure around it takes the keys.
              <circle
                key={p.density}
                className="sweep-point"
                cx={x(p.density)}
                cy={y(p.perplexity)}
                r={3.5}
                onClick={() => onChoose(p)}
              >
                <title>{words(p)}</title>
              </circle>
            ))}
            <text className="sweep-label" stroke="none" x={width - RIGHT + 8} y={labels[i]} dy="0.32em">
              {shortTitle(method)}
            </text>
          </g>
        ))}
        <circle className="sweep-best" cx={x(best.density)} cy={y(best.perplexity)} r={8} />
        <circle className="sweep-chosen" cx={x(chosen.density)} cy={y(chosen.perplexity)} r={5.5} />
      </svg>
    </div>
  );
}

export function isSame(a: SweepPlace, b: SweepPlace): boolean {
  return a.method.id === b.method.id && a.density === b.density;
}

/** Moves positions apart until neighbours are `gap` from each other, within the bounds as far as they fit. */
function spread(positions: readonly number[], gap: number, least: number, most: number): number[] {
  const order = positions.map((at, i) => ({ at, i })).sort((a, b) => a.at - b.at);
  order.forEach((label, k) => {
    const before = order[k - 1];
    label.at = Math.max(label.at, before ? before.at + gap : least);
  });
  const over = Math.max(0, (order.at(-1)?.at ?? 0) - most);
  const moved = new Map(order.map(({ at, i }) => [i, at - over]));
  return positions.map((at, i) => moved.get(i) ?? at);
}
