// biome-ignore-all lint/a11y/useKeyWithClickEvents: the grid takes the keys.
// biome-ignore-all lint/a11y/useSemanticElements: <table> cannot draw only the rows in view.
// biome-ignore-all lint/a11y/useFocusableInteractive: one tab stop; the grid moves within by arrow keys.
import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { displayName } from '../../formats/names';
import { formatCount, formatCounted } from '../../formats/quantity';
import { SearchIcon } from './Button';
import { Cut } from './Section';

export interface TableColumn<T> {
  id: string;
  head: ReactNode;
  /** Track of the CSS grid, e.g. `minmax(200px, 1fr)`. */
  track: string;
  align?: 'end';
  cell(row: T): ReactNode;
  /** Sorts by this number or text when its head is pressed. */
  sortBy?(row: T): number | string;
}

/** A column of tensors' names, or of modules'. */
export function nameColumn<T>(head: string, nameOf: (row: T) => string): TableColumn<T> {
  const cell = (row: T) => <TensorName name={nameOf(row)} />;
  return { id: 'name', head, track: 'minmax(120px, 1fr)', cell, sortBy: nameOf };
}

/** A column of numbers. @param of null is none, which stands at the end */
export function numberColumn<T>(
  id: string,
  head: ReactNode,
  track: string,
  of: (row: T) => number | null,
  format: (value: number) => string,
  none: ReactNode = '–',
): TableColumn<T> {
  const cell = (row: T) => {
    const value = of(row);
    return value === null ? none : format(value);
  };
  return { id, head, track, align: 'end', cell, sortBy: (row) => of(row) ?? Number.NEGATIVE_INFINITY };
}

interface VirtualTableProps<T> {
  label: string;
  rows: readonly T[];
  columns: readonly TableColumn<T>[];
  rowKey(row: T): string;
  selected: string | null;
  onSelect(key: string): void;
  /** Shown in place of rows when there are none. */
  empty: ReactNode;
}

const ROW_HEIGHT = 28;
const HEAD_HEIGHT = 30;

/**
 * A table of any length that draws only the rows in view. One tab stop; arrow keys move the selection, heads with a
 * sort order are buttons.
 */
export function VirtualTable<T>(props: VirtualTableProps<T>) {
  const { label, columns, rowKey, selected, onSelect, empty } = props;
  const [sort, setSort] = useState<{ column: string; down: boolean } | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const rows = sorted(props.rows, columns, sort);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollMargin: HEAD_HEIGHT,
    scrollPaddingStart: HEAD_HEIGHT,
  });
  const at = rows.findIndex((row) => rowKey(row) === selected);
  const drawn = virtualizer.getVirtualItems().some((item) => item.index === at);
  // A tensor chosen elsewhere (a heatmap cell) comes into view here too; one chosen here is in view already.
  const shown = at >= 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another order shows its beginning, not where the tensor went.
  useEffect(() => {
    if (shown) virtualizer.scrollToIndex(at);
  }, [selected, shown, virtualizer]);
  const sortBy = (column: string) => {
    setSort(nextSort(sort, column));
    virtualizer.scrollToOffset(0);
  };
  const move = (to: number) => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, to))];
    if (row !== undefined && rowKey(row) !== selected) onSelect(rowKey(row));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_HEIGHT) - 2);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? rows.length - 1 : at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    };
    const to = steps[event.key];
    if (to === undefined || event.target !== event.currentTarget) return;
    event.preventDefault();
    move(to);
  };
  const tracks = { gridTemplateColumns: columns.map((c) => c.track).join(' ') };
  return (
    <div
      ref={scroller}
      className="table scroll panel"
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      aria-activedescendant={drawn ? `${id}-${at}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div className="table-head tiny quiet strong nowrap" role="row" style={tracks} aria-rowindex={1}>
        {columns.map((column) => (
          <Head
            key={column.id}
            column={column}
            direction={sort?.column === column.id ? (sort.down ? 'descending' : 'ascending') : null}
            onSort={() => sortBy(column.id)}
          />
        ))}
      </div>
      {rows.length === 0 ? (
        <div className="table-empty quiet" role="row">
          <div role="gridcell">{empty}</div>
        </div>
      ) : null}
      <div role="presentation" className="relative" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          const key = rowKey(row);
          return (
            <div
              key={key}
              id={`${id}-${item.index}`}
              role="row"
              className="table-row mono small nowrap"
              aria-rowindex={item.index + 2}
              aria-selected={key === selected}
              style={{ ...tracks, top: item.start - HEAD_HEIGHT }}
              onClick={() => onSelect(key)}
            >
              {columns.map((column) => (
                <div key={column.id} role="gridcell" data-align={column.align}>
                  {column.cell(row)}
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface HeadProps<T> {
  column: TableColumn<T>;
  direction: 'ascending' | 'descending' | null;
  onSort(): void;
}

function Head<T>({ column, direction, onSort }: HeadProps<T>) {
  return (
    <div
      role="columnheader"
      data-align={column.align}
      aria-sort={column.sortBy ? (direction ?? 'none') : undefined}
    >
      {column.sortBy ? (
        <button type="button" className="table-sort" data-direction={direction} onClick={onSort}>
          {column.head}
        </button>
      ) : (
        column.head
      )}
    </div>
  );
}

/** First press: largest first; second: smallest first; third: file order again. */
function nextSort(sort: { column: string; down: boolean } | null, column: string) {
  if (sort?.column !== column) return { column, down: true };
  return sort.down ? { column, down: false } : null;
}

function sorted<T>(
  rows: readonly T[],
  columns: readonly TableColumn<T>[],
  sort: { column: string; down: boolean } | null,
): readonly T[] {
  const by = columns.find((c) => c.id === sort?.column)?.sortBy;
  if (!by || !sort) return rows;
  const sign = sort.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = by(a);
    const y = by(b);
    return (
      sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)))
    );
  });
}

interface TensorTableProps<T> extends Omit<VirtualTableProps<T>, 'empty'> {
  /** Name of the part of the page. */
  title: string;
  /** Rows that pass the filter are `rows`, of so many. */
  of: number;
  /** Noun for a row: `output tensor`. */
  what: string;
  filter: string;
  onFilter(filter: string): void;
  /** Beside the filter. */
  children?: ReactNode;
}

/** A table of tensors, with a field that narrows it and the number of remaining rows. */
export function TensorTable<T>(props: TensorTableProps<T>) {
  const { title, of, what, filter, onFilter, children, ...table } = props;
  const words = filter.trim();
  return (
    <section className="grid head-rows table-section" aria-label={title}>
      <div className="row wrap apart">
        <label className="search">
          <SearchIcon />
          <input
            className="field"
            type="search"
            placeholder="Filter tensors, e.g. layers.3 mlp"
            aria-label="Filter tensors"
            value={filter}
            onChange={(event) => onFilter(event.target.value)}
          />
        </label>
        <span className="small quiet" role="status">
          {words === ''
            ? formatCounted(of, what)
            : `${formatCount(table.rows.length)} of ${formatCounted(of, 'tensor')}`}
        </span>
        {children}
      </div>
      <VirtualTable
        {...table}
        empty={words === '' ? `There are no ${what}s.` : `No tensor’s name contains “${words}”.`}
      />
    </section>
  );
}

/** Whether a text has every word of the filter, in any order and case. */
export function passesFilter(filter: string, text: string): boolean {
  if (filter === '') return true; // of a hundred thousand names
  const low = text.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}

/**
 * A tensor's name in a table, without what nearly all names share (`model.` and `.weight`); the whole name is its
 * tooltip. Where it is still too long it is cut in the middle: the beginning has the layer, the end the module.
 */
export function TensorName({ name }: { name: string }) {
  const short = shortTensorName(name);
  const parts = short.split('.');
  const end = parts.length > 2 ? parts.slice(-2).join('.') : '';
  return <Cut text={short} end={end.length} title={displayName(name)} />;
}

/** Name for display: characters that are invisible, or reverse the direction of writing, are spelled out. */
function shortTensorName(name: string): string {
  return displayName(name.replace(/^model\./, '').replace(/\.weight$/, ''));
}
