// biome-ignore-all lint/a11y/useSemanticElements: a grid of coloured cells: <table> would bring its own layout.
// biome-ignore-all lint/a11y/useFocusableInteractive: one tab stop; the grid moves within by arrow keys.
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type PointerEvent,
  useCallback,
  useRef,
  useState,
} from 'react';
import { setView, toggleSelected } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';
import { type ColorScale, wantsLightText } from './color-scale';
import { type Cell, type CellRow, cellText, type Heatmap, type LayerGrid } from './heatmap-data';
import { firstName, nameWithin, nextName } from './heatmap-keys';
import type { ShownMetric } from './metrics';

interface HeatmapGridProps {
  labelledBy: string;
  grid: LayerGrid;
  data: Heatmap;
  metric: ShownMetric;
  scale: ColorScale;
  annotated: boolean;
}

/**
 * Layers down, modules across, the mean of each layer as a bar at the end of its row; tensors of no layer have rows of
 * their own below. One tab stop, arrow keys move, Enter opens the tensor.
 */
export function HeatmapGrid({ labelledBy, grid, data, metric, scale, annotated }: HeatmapGridProps) {
  const studio = useStudio();
  const root = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<string | null>(null);
  const focused = active ?? firstName(data);
  const onKeyDown = (event: KeyboardEvent) => {
    const name = cellName(event.target);
    if (name === null) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      toggleSelected(studio, name);
      return;
    }
    const next = nextName(data, name, event.key, event.ctrlKey || event.metaKey);
    if (next === null) return;
    event.preventDefault();
    setActive(next);
    root.current?.querySelector<HTMLElement>(`[data-name="${CSS.escape(next)}"]`)?.focus();
  };
  const hover = useCallback(
    (event: PointerEvent) => setView(studio, { hovered: cellName(event.target) }),
    [studio],
  );
  const height = cellHeight(data.rows.length);
  const style = {
    '--columns': grid.modules.length,
    '--cell': `${height}px`,
    '--heads': `${headHeight(grid)}px`,
  };
  return (
    <div
      ref={root}
      className="heatmap"
      role="grid"
      aria-labelledby={labelledBy}
      aria-readonly="true"
      data-annotated={annotated || undefined}
      style={style as CSSProperties}
      onKeyDown={onKeyDown}
      onPointerOver={hover}
      onPointerLeave={() => setView(studio, { hovered: null })}
      onFocus={(event) => setView(studio, { hovered: cellName(event.target) })}
      onBlur={() => setView(studio, { hovered: null })}
      onClick={(event) => {
        const name = cellName(event.target);
        if (name === null) return;
        setActive(name);
        toggleSelected(studio, name);
      }}
    >
      <div role="row" className="heat-row heat-heads">
        <span role="columnheader" className="visually-hidden">
          layer
        </span>
        {grid.modules.map(({ module, label }, i) => (
          <span
            key={module}
            role="columnheader"
            className="heat-head"
            style={{ gridColumn: i + 2 }}
            title={module}
          >
            <span>{label}</span>
          </span>
        ))}
        <span role="columnheader" className="heat-head heat-mean-head">
          <span>mean</span>
        </span>
      </div>
      {data.rows.map((row) => (
        <Row
          key={row.layer}
          row={row}
          metric={metric}
          scale={scale}
          focused={nameWithin(row, focused)}
          numbered={height >= LABEL_HEIGHT || row.layer % 5 === 0}
          annotated={annotated}
        />
      ))}
      {data.loose.map((cell) => (
        <LooseRow key={cell.name} cell={cell} metric={metric} scale={scale} focused={cell.name === focused} />
      ))}
    </div>
  );
}

interface RowProps {
  row: CellRow;
  metric: ShownMetric;
  scale: ColorScale;
  /** Name of the cell in this row that Tab reaches. */
  focused: string | null;
  annotated: boolean;
  /** Writes the layer's number. */
  numbered: boolean;
}

/** Rows lower than this, in pixels, are too close for a number each. */
const LABEL_HEIGHT = 11;

const Row = memo(function Row({ row, metric, scale, focused, annotated, numbered }: RowProps) {
  // One subscription a row: a step of a slider changes the facts several times, and every cell of every chart would look.
  const selected = useFacts(({ view }) => nameWithin(row, view.selected));
  const hovered = useFacts(({ view }) => nameWithin(row, view.hovered));
  return (
    <div role="row" className="heat-row">
      <span role="rowheader" className="heat-layer" aria-label={`layer ${row.layer}`}>
        {numbered ? row.layer : ''}
      </span>
      {row.cells.map((cell, i) =>
        cell ? (
          <HeatCell
            key={cell.name}
            cell={cell}
            metric={metric}
            scale={scale}
            focused={cell.name === focused}
            mark={cell.name === selected ? 'selected' : cell.name === hovered ? 'hovered' : null}
            annotated={annotated}
          />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a hole has no name, and columns do not move.
          <span key={i} role="gridcell" className="heat-hole" aria-label="none" />
        ),
      )}
      <MeanBar value={row.mean} metric={metric} scale={scale} layer={row.layer} />
    </div>
  );
});

interface HeatCellProps {
  cell: Cell;
  metric: ShownMetric;
  scale: ColorScale;
  focused: boolean;
  mark: 'selected' | 'hovered' | null;
  annotated?: boolean;
}

function HeatCell({ cell, metric, scale, focused, mark, annotated }: HeatCellProps) {
  const value = cell.measured?.value;
  const background = value === undefined ? undefined : scale.color(value);
  return (
    <span
      role="gridcell"
      className="heat-cell"
      data-name={cell.name}
      data-state={cell.state}
      data-hovered={mark === 'hovered' || undefined}
      aria-selected={mark === 'selected'}
      aria-label={cellText(cell, metric)}
      tabIndex={focused ? 0 : -1}
      style={background ? { background } : undefined}
    >
      {annotated && value !== undefined && background ? (
        <span className="heat-value" data-dark={wantsLightText(background) || undefined} aria-hidden="true">
          {metric.format(value)}
        </span>
      ) : null}
    </span>
  );
}

function LooseRow({ cell, metric, scale, focused }: Omit<HeatCellProps, 'mark'>) {
  const mark = useFacts(({ view }) =>
    view.selected === cell.name ? 'selected' : view.hovered === cell.name ? 'hovered' : null,
  );
  return (
    <div role="row" className="heat-row heat-loose">
      <HeatCell cell={cell} metric={metric} scale={scale} focused={focused} mark={mark} />
      <span role="rowheader" className="heat-loose-name truncate">
        {cell.module}
      </span>
      <span role="gridcell" className="heat-loose-value">
        {cell.measured ? metric.format(cell.measured.value) : ''}
        <span className="visually-hidden">{cell.measured ? '' : 'no value'}</span>
      </span>
    </div>
  );
}

function MeanBar({
  value,
  metric,
  scale,
  layer,
}: {
  value: number | null;
  metric: ShownMetric;
  scale: ColorScale;
  layer: number;
}) {
  const at = (v: number) =>
    (Math.min(scale.max, Math.max(scale.min, v)) - scale.min) / (scale.max - scale.min);
  const from = metric.diverging ? at(0) : 0;
  const to = value === null ? from : at(value);
  return (
    <span
      role="gridcell"
      className="heat-mean"
      aria-label={`layer ${layer}, mean ${value === null ? 'not measured yet' : metric.format(value)}`}
      title={value === null ? undefined : metric.format(value)}
    >
      <span
        className="bar-fill"
        style={{ left: `${Math.min(from, to) * 100}%`, width: `${Math.abs(to - from) * 100}%` }}
      />
    </span>
  );
}

/** Rows of a 6-layer model are tall, those of an 80-layer model still tell apart. In pixels. */
function cellHeight(rows: number): number {
  return Math.round(Math.min(24, Math.max(9, 420 / Math.max(1, rows))));
}

/** Room for the longest column head, written upright. In pixels. */
function headHeight(grid: LayerGrid): number {
  const longest = Math.max(4, ...grid.modules.map((m) => m.label.length));
  return Math.min(110, Math.round(longest * 5.6) + 4);
}

function cellName(target: EventTarget): string | null {
  return target instanceof Element
    ? (target.closest<HTMLElement>('[data-name]')?.dataset.name ?? null)
    : null;
}
