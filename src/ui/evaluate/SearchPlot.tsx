import { useState } from 'react';
import type { SearchPoint } from '../../reports/search';
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
import { Select } from '../parts/Select';
import type { Objective } from '../state/search';
import { useNarrow } from '../studio-context';

const ROOM = { height: 240, left: 46, right: 12, top: 12, bottom: 30, foot: 4 };
const ORDER = 'order of measuring';

interface SearchPlotProps {
  objective: Objective;
  points: readonly SearchPoint[];
  best: number;
  chosen: number;
  /** Title of a setting. */
  titleOf(name: string): string;
  onChoose(index: number): void;
}

/** Objective of every candidate, over the order of measuring or over one of the settings. */
export function SearchPlot({ objective, points, best, chosen, titleOf, onChoose }: SearchPlotProps) {
  const [axis, setAxis] = useState(ORDER);
  const names = Object.keys(points[0]?.values ?? {});
  const along = names.includes(axis) ? axis : ORDER;
  const room: PlotRoom = { ...ROOM, width: useNarrow() ? 400 : 640 };
  const drawn = points.flatMap((point, i) => {
    const value = objective.of(point);
    return value === null ? [] : [{ i, value, x: along === ORDER ? i + 1 : point.values[along]! }];
  });
  const [least, most] = extent(drawn.map((p) => p.value));
  const wide = least > 0 && most > 4 * least;
  const x = acrossScale(room, padded(extent(drawn.map((p) => p.x))));
  const y = upwardScale(room, padded([least, most]), wide);
  const improved = drawn.filter((p, k) =>
    drawn.slice(0, k).every((q) => objective.isBetter(points[p.i]!, points[q.i]!)),
  );

  const order = [...drawn].sort((a, b) => a.x - b.x).map((p) => p.i);
  const at = order.indexOf(chosen);
  const keys = new Map([
    ['ArrowLeft', order[at - 1]],
    ['ArrowRight', order[at + 1]],
    ['Home', order[0]],
    ['End', order.at(-1)],
  ]);
  const words = (i: number) => `candidate ${i + 1}: ${objective.text(points[i]!)}`;
  return (
    <>
      <label className="labeled">
        <span>Along</span>
        <Select
          value={along}
          options={[ORDER, ...names].map((name) => ({
            value: name,
            label: name === ORDER ? name : titleOf(name),
          }))}
          onChange={setAxis}
        />
      </label>
      <PlotSlider
        room={room}
        label="Candidate of the search; left and right go through them"
        min={1}
        max={points.length}
        now={chosen + 1}
        words={`${words(chosen)}${chosen === best ? ', the best' : ''}`}
        keys={keys}
        onChoose={onChoose}
      >
        <PlotAxes
          room={room}
          x={x}
          y={y}
          along={6}
          up={fewTicks(y, wide)}
          title={along === ORDER ? along : titleOf(along)}
        />
        {along === ORDER ? (
          <polyline
            className="plot-line"
            stroke="var(--model-0)"
            points={improved.map((p) => `${x(p.x)},${y(p.value)}`).join(' ')}
          />
        ) : null}
        {drawn.map((p) => (
          <PlotPoint
            key={p.i}
            x={x(p.x)}
            y={y(p.value)}
            words={words(p.i)}
            fill="var(--model-0)"
            onChoose={() => onChoose(p.i)}
          />
        ))}
        {(['best', 'chosen'] as const).map((around) => {
          const place = drawn.find((p) => p.i === (around === 'best' ? best : chosen));
          return place ? <PlotRing key={around} x={x(place.x)} y={y(place.value)} around={around} /> : null;
        })}
      </PlotSlider>
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
