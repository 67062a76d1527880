import { type PointerEvent, useRef } from 'react';
import { rangeOf } from '../charts/measured';
import { setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { chanceOf, type LayersView } from './columns';

/** Units of the drawing across; it is stretched to the room there is. */
const WIDTH = 200;

interface DepthPlotProps {
  view: LayersView;
  /** Heights of rows, of what lies between them, and of the heads of the other columns. */
  cell: number;
  gap: number;
  heads: number;
}

/** The mean of every layer, a line a run, beside the rows of the canvas; dragging over it picks a range of layers. */
export function DepthPlot({ view, cell, gap, heads }: DepthPlotProps) {
  const studio = useStudio();
  const layers = useStudioState((s) => s.view.layers);
  const begun = useRef<number | null>(null);
  const { columns, metric, grid } = view;
  const rows = grid.layers;
  const pitch = cell + gap;
  const height = Math.max(1, rows.length * pitch - gap);
  const lines = columns.map(({ run, letter, data }, i) => ({
    id: run.id,
    letter,
    place: i,
    points: data.rows.flatMap((row, r) => (row.mean === null ? [] : [{ value: row.mean, row: r }])),
  }));
  const chance = columns[0]
    ? rows.flatMap(({ layer }, r) => {
        const value = chanceOf(view, columns[0]!, layer);
        return value === null ? [] : [{ value, row: r }];
      })
    : [];
  const all = [...lines.flatMap((line) => line.points), ...chance].map((p) => p.value);
  const { least, most } = rangeOf(all);
  const margin = Math.max((most - least) * 0.08, metric.isShare ? 0.01 : Math.abs(most) * 0.02 || 0.01);
  const [from, to] = [least - margin, most + margin];
  const x = (value: number) => ((value - from) / (to - from)) * WIDTH;
  const y = (row: number) => row * pitch + cell / 2;
  const path = (points: readonly { value: number; row: number }[]) =>
    points.map((p) => `${x(p.value).toFixed(1)},${y(p.row)}`).join(' ');
  const rowAt = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.min(rows.length - 1, Math.max(0, Math.floor((event.clientY - box.top) / pitch)));
  };
  const pick = (row: number) => {
    const ends = [begun.current ?? row, row].sort((a, b) => a - b).map((r) => rows[r]?.layer ?? 0);
    setView(studio, { layers: [ends[0]!, ends[1]!] });
  };
  const band = layers && {
    top: rows.findIndex((r) => r.layer >= layers[0]) * pitch,
    rows: rows.filter((r) => r.layer >= layers[0] && r.layer <= layers[1]).length,
  };
  return (
    <figure className="layers-block layers-depth">
      <figcaption className="small quiet">
        <span className="truncate">Mean by layer</span>
      </figcaption>
      <div
        className="depth-axis small quiet"
        style={{ height: heads }}
        data-bands={view.bands.length > 0 || undefined}
      >
        {all.length > 0 ? (
          <>
            <span>{metric.tick(Math.max(from, metric.full.min))}</span>
            <span>{metric.tick(metric.full.max === null ? to : Math.min(to, metric.full.max))}</span>
          </>
        ) : null}
      </div>
      <svg
        className="depth-plot"
        viewBox={`0 0 ${WIDTH} ${height}`}
        preserveAspectRatio="none"
        style={{ height }}
        role="img"
        aria-label={lines
          .filter((line) => line.points.length > 0)
          .map((line) => {
            const { least: low, most: high } = rangeOf(line.points.map((p) => p.value));
            return `${line.letter}: means of layers from ${metric.format(low)} to ${metric.format(high)}`;
          })
          .join('; ')}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          begun.current = rowAt(event);
          pick(begun.current);
        }}
        onPointerMove={(event) => {
          if (begun.current !== null) pick(rowAt(event));
        }}
        onPointerUp={() => {
          begun.current = null;
        }}
      >
        {band && band.rows > 0 ? (
          <rect className="depth-band" x={0} y={band.top} width={WIDTH} height={band.rows * pitch - gap} />
        ) : null}
        {chance.length > 0 ? <polyline className="depth-chance" points={path(chance)} /> : null}
        {lines.map((line) => (
          <polyline key={line.id} className="depth-line" data-place={line.place} points={path(line.points)} />
        ))}
      </svg>
    </figure>
  );
}
