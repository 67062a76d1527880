import {
  acrossScale,
  fewTicks,
  PlotAxes,
  PlotPoint,
  PlotRing,
  type PlotRoom,
  PlotSlider,
  upwardScale,
} from '../charts/PlotFrame';
import { useNarrow } from '../studio-context';
import { type SweepCurve, type SweepPlace, shortTitle } from './density-sweep';

const ROOM = { height: 260, left: 46, right: 118, top: 12, bottom: 30, foot: 2 };

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
  const room: PlotRoom = { ...ROOM, width: useNarrow() ? 400 : 640 };
  const end = room.width - room.right;
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
  const least = Math.min(...values);
  const most = Math.max(...values);
  const wide = most > 4 * least;
  const x = acrossScale(room, [0, 1]);
  const y = upwardScale(room, most > least ? [least, most] : [least * 0.9, least * 1.1], wide);
  const labels = spread(
    lines.map(({ places }) => y(places.at(-1)!.perplexity)),
    15,
    room.top + 4,
    room.height - room.bottom,
  );

  const row = Math.max(
    0,
    lines.findIndex((l) => l.method.id === chosen.method.id),
  );
  const places = lines[row]?.places ?? [];
  const at = places.findIndex((p) => p.density === chosen.density);
  const near = (of: readonly SweepPlace[] = []) =>
    [...of].sort((a, b) => Math.abs(a.density - chosen.density) - Math.abs(b.density - chosen.density))[0];
  const keys = new Map([
    ['ArrowLeft', places[at - 1]],
    ['ArrowRight', places[at + 1]],
    ['ArrowUp', near(lines[row - 1]?.places)],
    ['ArrowDown', near(lines[row + 1]?.places)],
    ['Home', places[0]],
    ['End', places.at(-1)],
  ]);
  const words = (p: SweepPlace) =>
    `${shortTitle(p.method)}, density ${p.density}: perplexity ${p.perplexity.toFixed(3)}`;
  return (
    <PlotSlider
      room={room}
      label="Point of the density sweep; left and right change the density, up and down the method"
      min={0}
      max={1}
      now={chosen.density}
      words={`${words(chosen)}${isSame(chosen, best) ? ', the best' : ''}`}
      className="sweep-plot"
      keys={keys}
      onChoose={onChoose}
    >
      <PlotAxes room={room} x={x} y={y} along={5} up={fewTicks(y, wide)} title="density" />
      {base === null ? null : (
        <>
          <line className="sweep-base" x1={room.left} x2={end} y1={y(base)} y2={y(base)} />
          <text className="plot-tick" x={room.left + 4} y={y(base) - 4}>
            base {base.toFixed(3)}
          </text>
        </>
      )}
      {lines.map(({ method, colour, dash, places }, i) => (
        <g key={method.id} stroke={colour} fill={colour}>
          <polyline
            className="plot-line"
            strokeDasharray={dash}
            points={places.map((p) => `${x(p.density)},${y(p.perplexity)}`).join(' ')}
          />
          {places.map((p) => (
            <PlotPoint
              key={p.density}
              x={x(p.density)}
              y={y(p.perplexity)}
              words={words(p)}
              onChoose={() => onChoose(p)}
            />
          ))}
          <text className="sweep-label" stroke="none" x={end + 8} y={labels[i]} dy="0.32em">
            {shortTitle(method)}
          </text>
        </g>
      ))}
      <PlotRing x={x(best.density)} y={y(best.perplexity)} around="best" />
      <PlotRing x={x(chosen.density)} y={y(chosen.perplexity)} around="chosen" />
    </PlotSlider>
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
