// biome-ignore-all lint/a11y/useSemanticElements: a grid of colored cells: <table> would bring its own layout.
// biome-ignore-all lint/a11y/useFocusableInteractive: one tab stop; the grid moves within by arrow keys.
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type PointerEvent,
  useCallback,
  useDeferredValue,
  useMemo,
  useRef,
  useState,
} from 'react';
import { sameItems } from '../../merge/prediction/same-items';
import { REST_MS, useDebounced } from '../parts/use-debounced';
import { setView, toggleSelected } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import type { ColorScale } from './color-scale';
import { HeatmapCanvas } from './HeatmapCanvas';
import {
  type Cell,
  type CellRow,
  cellText,
  type Heatmap,
  type LayerGrid,
  rowLabel,
  rowWords,
  sameStates,
} from './heatmap-data';
import { ALONE, type Arrangement, cellHeight, headHeight } from './heatmap-layout';
import type { ShownMetric } from './metrics';

interface HeatmapGridProps {
  labelledBy: string;
  grid: LayerGrid;
  data: Heatmap;
  metric: ShownMetric;
  scale: ColorScale;
  annotated: boolean;
  arrangement?: Arrangement;
  /** Names over neighboring columns: attention, MLP. */
  bands?: readonly Band[];
  /** Height of the heads; by default that of the longest, upright. */
  heads?: number;
  /** Action of Enter or a click on a cell; by default it selects the cell's tensor. */
  onOpen?(name: string): void;
}

export interface Band {
  label: string;
  columns: number;
}

/**
 * Layers down, modules across, the mean of each layer as a bar at the end of its row; tensors of no layer have rows of
 * their own below. One tab stop, arrow keys move, Enter opens the tensor.
 */
export function HeatmapGrid(props: HeatmapGridProps) {
  const { labelledBy, grid, data, metric, scale, annotated, arrangement = ALONE, bands, onOpen } = props;
  const studio = useStudio();
  const root = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<string | null>(null);
  const focused = active ?? firstName(data);
  const spoken = useSpoken(data, metric);
  // one subscription per grid: a step of a slider changes the state several times, and every row of every chart would look
  const selected = useStudioState((s) => s.view.selected);
  const hovered = useStudioState((s) => s.view.hovered);
  const open = onOpen ?? ((name: string) => toggleSelected(studio, name));
  const onKeyDown = (event: KeyboardEvent) => {
    const name = cellName(event.target);
    if (name === null) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      open(name);
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
  const height = arrangement.cell ?? cellHeight(data.rows.length);
  const style = {
    '--columns': grid.modules.length,
    '--cell': `${height}px`,
    '--heads': `${props.heads ?? headHeight(grid)}px`,
  };
  return (
    <div
      ref={root}
      className="heatmap"
      role="grid"
      aria-labelledby={labelledBy}
      aria-readonly="true"
      data-annotated={annotated || undefined}
      data-block={arrangement.means ? undefined : arrangement.numbers ? 'numbered' : 'bare'}
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
        open(name);
      }}
    >
      {bands ? <Bands bands={bands} /> : null}
      <Heads grid={grid} means={arrangement.means} />
      <div role="rowgroup" className="heat-body">
        <HeatmapCanvas
          columns={grid.modules.length}
          data={data}
          metric={metric}
          scale={scale}
          annotated={annotated}
          arrangement={arrangement}
        />
        <Rows
          numbers={arrangement.numbers}
          means={arrangement.means}
          {...spoken}
          metric={metric}
          focused={focused}
          selected={selected}
          hovered={hovered}
          height={height}
        />
      </div>
    </div>
  );
}

/** Over the heads; the modules' names have the same content. */
const Bands = memo(function Bands({ bands }: { bands: readonly Band[] }) {
  let column = 2;
  return (
    <div className="heat-row heat-bands" aria-hidden="true">
      {bands.map(({ label, columns }) => {
        const from = column;
        column += columns;
        return (
          <span key={from} className="heat-band truncate" style={{ gridColumn: `${from} / ${column}` }}>
            {columns > 1 ? label : ''}
          </span>
        );
      })}
    </div>
  );
});

const Heads = memo(function Heads({ grid, means }: { grid: LayerGrid; means: boolean }) {
  return (
    <div role="row" className="heat-row heat-heads">
      <span role="columnheader" className="visually-hidden">
        layer
      </span>
      {grid.modules.map(({ module, label }, i) => (
        <span
          key={module}
          role="columnheader"
          className="heat-head"
          data-short={label.length === 1 || undefined}
          style={{ gridColumn: i + 2 }}
          title={module}
        >
          <span>{label}</span>
        </span>
      ))}
      {means ? (
        <span role="columnheader" className="heat-head heat-mean-head">
          <span>mean</span>
        </span>
      ) : null}
    </div>
  );
});

interface RowsProps {
  rows: readonly CellRow[];
  loose: readonly Cell[];
  metric: ShownMetric;
  /** Names of cells. */
  focused: string | null;
  selected: string | null;
  hovered: string | null;
  /** Of a row, in pixels. */
  height: number;
  numbers: boolean;
  means: boolean;
}

const Rows = memo(function Rows(props: RowsProps) {
  const { rows, loose, metric, focused, selected, hovered, height, numbers, means } = props;
  return (
    <>
      {rows.map((row) => (
        <Row
          key={row.layer}
          row={row}
          metric={metric}
          focused={nameWithin(row, focused)}
          selected={nameWithin(row, selected)}
          hovered={nameWithin(row, hovered)}
          numbered={numbers && (height >= LABEL_HEIGHT || (row.other?.number ?? row.layer) % 5 === 0)}
          means={means}
        />
      ))}
      {loose.map((cell) => (
        <LooseRow
          key={cell.name}
          cell={cell}
          metric={metric}
          focused={cell.name === focused}
          mark={markOf(cell, selected, hovered)}
        />
      ))}
    </>
  );
});

type Spoken = Pick<Heatmap, 'rows' | 'loose'>;

/**
 * The words of the cells. They follow a slider once it rests, so that a step only paints; where a cell got or lost its
 * value they follow at once.
 */
function useSpoken(data: Heatmap, metric: ShownMetric): Spoken {
  const now = useMemo(() => ({ data, metric }), [data, metric]);
  const settled = useDeferredValue(useDebounced(now, REST_MS));
  const before = useRef<Spoken>(data);
  return useMemo(() => {
    const said = settled.metric === metric ? wordsOf(settled.data, data) : data;
    // the very lists, where nothing has news: a step of a slider does not go through the rows
    const { rows, loose } = before.current;
    before.current = {
      rows: sameItems(rows, said.rows) ? rows : said.rows,
      loose: sameItems(loose, said.loose) ? loose : said.loose,
    };
    return before.current;
  }, [settled, data, metric]);
}

/** The rows of the settled values; of the new ones where cells got or lost theirs. */
function wordsOf(settled: Heatmap, data: Heatmap): Spoken {
  return {
    rows: data.rows.map((row, i) => {
      const old = settled.rows[i];
      return old?.layer === row.layer && sameStates(old.cells, row.cells) ? old : row;
    }),
    loose: sameStates(settled.loose, data.loose) ? settled.loose : data.loose,
  };
}

interface RowProps {
  row: CellRow;
  metric: ShownMetric;
  /** Name of the cell in this row that Tab reaches. */
  focused: string | null;
  selected: string | null;
  hovered: string | null;
  /** Writes the layer's number. */
  numbered: boolean;
  means: boolean;
}

/** Rows lower than this, in pixels, are too close for a number each. */
const LABEL_HEIGHT = 11;

const Row = memo(function Row({ row, metric, focused, selected, hovered, numbered, means }: RowProps) {
  const mean = row.mean === null ? null : metric.format(row.mean);
  return (
    <div role="row" className="heat-row">
      <span role="rowheader" className="heat-layer" aria-label={rowWords(row)}>
        {numbered ? rowLabel(row) : ''}
      </span>
      {row.cells.map((cell, i) =>
        cell ? (
          <HeatCell
            key={cell.name}
            cell={cell}
            metric={metric}
            focused={cell.name === focused}
            mark={markOf(cell, selected, hovered)}
          />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a hole has no name, and columns do not move.
          <span key={i} role="gridcell" className="heat-hole" aria-label="none" />
        ),
      )}
      {means ? (
        <span
          role="gridcell"
          aria-label={`${rowWords(row)}, mean ${mean ?? 'not measured yet'}`}
          title={mean ?? undefined}
        />
      ) : null}
    </div>
  );
});

type Mark = 'selected' | 'hovered' | null;

function markOf({ name }: Cell, selected: string | null, hovered: string | null): Mark {
  return name === selected ? 'selected' : name === hovered ? 'hovered' : null;
}

interface HeatCellProps {
  cell: Cell;
  metric: ShownMetric;
  focused: boolean;
  mark: Mark;
}

function HeatCell({ cell, metric, focused, mark }: HeatCellProps) {
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
    />
  );
}

const LooseRow = memo(function LooseRow({ cell, metric, focused, mark }: HeatCellProps) {
  return (
    <div role="row" className="heat-row heat-loose">
      <HeatCell cell={cell} metric={metric} focused={focused} mark={mark} />
      <span role="rowheader" className="heat-loose-name truncate">
        {cell.module}
      </span>
      <span
        role="gridcell"
        className="heat-loose-value"
        aria-label={cell.measured ? metric.format(cell.measured.value) : 'no value'}
      />
    </div>
  );
});

function cellName(target: EventTarget): string | null {
  return target instanceof Element
    ? (target.closest<HTMLElement>('[data-name]')?.dataset.name ?? null)
    : null;
}

// Where the keyboard leads in a heatmap. Pure.

/** The cell that Tab reaches first. */
export function firstName(data: Heatmap): string | null {
  return data.rows[0]?.cells.find((c) => c)?.name ?? data.loose[0]?.name ?? null;
}

/** `name` if it is of this row, else null. */
function nameWithin(row: CellRow, name: string | null): string | null {
  return name !== null && row.cells.some((c) => c?.name === name) ? name : null;
}

/** Where a key leads from a cell: the nearest cell that exists, or null at the edge and for other keys. */
export function nextName(data: Heatmap, from: string, key: string, far: boolean): string | null {
  const lines = [...data.rows.map((r) => r.cells), ...data.loose.map((c) => [c])];
  const y = lines.findIndex((line) => line.some((c) => c?.name === from));
  const x = lines[y]?.findIndex((c) => c?.name === from) ?? -1;
  const line = lines[y];
  if (!line) return null;
  const name = (cell: Cell | null | undefined) => cell?.name ?? null;
  const right = line.slice(x + 1).filter((c) => c !== null);
  const left = line.slice(0, x).filter((c) => c !== null);
  const column = (l: readonly (Cell | null)[]) => l[Math.min(x, l.length - 1)] ?? l.find((c) => c !== null);
  switch (key) {
    case 'ArrowRight':
      return name(far ? right.at(-1) : right[0]);
    case 'ArrowLeft':
      return name(far ? left[0] : left.at(-1));
    case 'Home':
      return name(left[0]);
    case 'End':
      return name(right.at(-1));
    case 'ArrowDown':
      return name(column((far ? lines.at(-1) : lines[y + 1]) ?? []));
    case 'ArrowUp':
      return name(column((far ? lines[0] : lines[y - 1]) ?? []));
    default:
      return null;
  }
}
