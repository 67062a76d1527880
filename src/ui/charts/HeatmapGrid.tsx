// biome-ignore-all lint/a11y/useSemanticElements: a grid of colored cells: <table> would bring its own layout.
// biome-ignore-all lint/a11y/useFocusableInteractive: one tab stop; the grid moves within by arrow keys.
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type PointerEvent,
  useCallback,
  useDeferredValue,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { REST_MS, useDebounced, useSameList } from '../parts/hooks';
import { setView } from '../state/studio';
import { useSlice, useStudio } from '../studio-context';
import type { ColorScale } from './color-scale';
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
import { type Arrangement, type HeatmapPicture, heatmapLayout, paintHeatmap } from './heatmap-paint';
import type { ShownMetric } from './shown-metric';

interface HeatmapGridProps {
  labelledBy: string;
  grid: LayerGrid;
  data: Heatmap;
  metric: ShownMetric;
  scale: ColorScale;
  arrangement: Arrangement;
  /** Names over neighboring columns: attention, MLP. */
  bands: readonly Band[];
  /** Height of the heads. */
  heads: number;
  /** Action of Enter or a click on a cell. */
  onOpen(name: string): void;
}

export interface Band {
  label: string;
  columns: number;
}

/**
 * Layers down, modules across. One tab stop, arrow keys move, Enter opens the tensor.
 */
export function HeatmapGrid(props: HeatmapGridProps) {
  const { labelledBy, grid, data, metric, scale, arrangement, bands, heads, onOpen } = props;
  const studio = useStudio();
  const root = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState<string | null>(null);
  const focused = active ?? firstName(data);
  const rows = useSpoken(data, metric);
  // one subscription per grid: a step of a slider changes the state several times, and every row of every chart would look
  const { selected, hovered } = useSlice('view', 'selected', 'hovered');
  const onKeyDown = (event: KeyboardEvent) => {
    const name = cellName(event.target);
    if (name === null) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      onOpen(name);
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
  const style = {
    '--columns': grid.modules.length,
    '--cell': `${arrangement.cell}px`,
    '--heads': `${heads}px`,
  };
  return (
    <div
      ref={root}
      className="heatmap"
      role="grid"
      aria-labelledby={labelledBy}
      aria-readonly="true"
      data-block={arrangement.numbers ? 'numbered' : 'bare'}
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
        onOpen(name);
      }}
    >
      <Bands bands={bands} />
      <Heads grid={grid} />
      <div role="rowgroup" className="heat-body">
        <HeatmapCanvas
          columns={grid.modules.length}
          data={data}
          metric={metric}
          scale={scale}
          arrangement={arrangement}
        />
        <Rows
          arrangement={arrangement}
          rows={rows}
          metric={metric}
          focused={focused}
          selected={selected}
          hovered={hovered}
        />
      </div>
    </div>
  );
}

interface HeatmapCanvasProps extends HeatmapPicture {
  columns: number;
  arrangement: Arrangement;
}

/** The colors under the cells of a grid. The cells' labels have their meaning. */
const HeatmapCanvas = memo(function HeatmapCanvas(props: HeatmapCanvasProps) {
  const element = useRef<HTMLCanvasElement>(null);
  const width = useRef(0);
  const font = useRef<string | null>(null);
  const paint = useRef(() => {});
  const ratio = usePixelRatio();

  useLayoutEffect(() => {
    paint.current = () => {
      const canvas = element.current;
      const context = canvas?.getContext('2d');
      if (!canvas || !context || width.current === 0) return;
      const layout = heatmapLayout(props.data.rows.length, props.columns, width.current, props.arrangement);
      const [across, down] = [Math.round(layout.width * ratio), Math.round(layout.height * ratio)];
      if (canvas.width !== across || canvas.height !== down) {
        canvas.width = across;
        canvas.height = down;
        canvas.style.width = `${across / ratio}px`;
        canvas.style.height = `${down / ratio}px`;
      }
      font.current ??= fontOf(canvas);
      paintHeatmap(context, props, layout, font.current, ratio);
    };
    paint.current();
  });

  useLayoutEffect(() => {
    const around = element.current?.parentElement;
    if (!around) return;
    // called once at the start, and before the page is painted: no frame is without its colors
    const observer = new ResizeObserver(([entry]) => {
      width.current = entry?.contentRect.width ?? 0;
      paint.current();
    });
    observer.observe(around);
    return () => observer.disconnect();
  }, []);

  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus.
  return <canvas ref={element} className="heat-canvas" aria-hidden="true" />;
});

function fontOf(canvas: HTMLCanvasElement): string {
  const { fontSize, fontFamily } = getComputedStyle(canvas);
  return `${fontSize} ${fontFamily}`;
}

/** Device pixels a CSS pixel has, now and after the page is zoomed or moved to another screen. */
function usePixelRatio(): number {
  return useSyncExternalStore(watchPixelRatio, () => devicePixelRatio);
}

function watchPixelRatio(changed: () => void): () => void {
  let list = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
  const onChange = () => {
    list = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    list.addEventListener('change', onChange, { once: true });
    changed();
  };
  list.addEventListener('change', onChange, { once: true });
  return () => list.removeEventListener('change', onChange);
}

/** Over the heads; the modules' names have the same content. */
const Bands = memo(function Bands({ bands }: { bands: readonly Band[] }) {
  let column = 2;
  if (bands.length === 0) return null;
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

const Heads = memo(function Heads({ grid }: { grid: LayerGrid }) {
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
    </div>
  );
});

interface RowsProps {
  rows: readonly CellRow[];
  metric: ShownMetric;
  /** Names of cells. */
  focused: string | null;
  selected: string | null;
  hovered: string | null;
  arrangement: Arrangement;
}

const Rows = memo(function Rows({ rows, metric, focused, selected, hovered, arrangement }: RowsProps) {
  const { numbers, cell } = arrangement;
  return rows.map((row) => (
    <Row
      key={row.layer}
      row={row}
      metric={metric}
      focused={nameWithin(row, focused)}
      selected={nameWithin(row, selected)}
      hovered={nameWithin(row, hovered)}
      numbered={numbers && (cell >= LABEL_HEIGHT || (row.other?.number ?? row.layer) % 5 === 0)}
    />
  ));
});

/**
 * The words of the cells. They follow a slider once it rests, so that a step only paints; where a cell got or lost its
 * value they follow at once.
 */
function useSpoken(data: Heatmap, metric: ShownMetric): readonly CellRow[] {
  const now = useMemo(() => ({ data, metric }), [data, metric]);
  const settled = useDeferredValue(useDebounced(now, REST_MS));
  return useSameList(settled.metric === metric ? wordsOf(settled.data, data) : data.rows);
}

/** The rows of the settled values; of the new ones where cells got or lost theirs. */
function wordsOf(settled: Heatmap, data: Heatmap): CellRow[] {
  return data.rows.map((row, i) => {
    const old = settled.rows[i];
    return old?.layer === row.layer && sameStates(old.cells, row.cells) ? old : row;
  });
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
}

/** Rows lower than this, in pixels, are too close for a number each. */
const LABEL_HEIGHT = 11;

const Row = memo(function Row({ row, metric, focused, selected, hovered, numbered }: RowProps) {
  return (
    <div role="row" className="heat-row">
      <span role="rowheader" className="heat-layer" aria-label={rowWords(row)}>
        {numbered ? rowLabel(row) : ''}
      </span>
      {row.cells.map((cell, i) =>
        cell ? (
          <span
            key={cell.name}
            role="gridcell"
            className="heat-cell"
            data-name={cell.name}
            data-state={cell.state}
            data-hovered={(cell.name === hovered && cell.name !== selected) || undefined}
            aria-selected={cell.name === selected}
            aria-label={cellText(cell, metric)}
            tabIndex={cell.name === focused ? 0 : -1}
          />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a hole has no name, and columns do not move.
          <span key={i} role="gridcell" className="heat-hole" aria-label="none" />
        ),
      )}
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
  return data.rows[0]?.cells.find((c) => c)?.name ?? null;
}

/** `name` if it is of this row, else null. */
function nameWithin(row: CellRow, name: string | null): string | null {
  return name !== null && row.cells.some((c) => c?.name === name) ? name : null;
}

/** Where a key leads from a cell: the nearest cell that exists, or null at the edge and for other keys. */
export function nextName(data: Heatmap, from: string, key: string, far: boolean): string | null {
  const lines = data.rows.map((r) => r.cells);
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
