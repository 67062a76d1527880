import { type CSSProperties, memo, useCallback, useId, useLayoutEffect, useRef, useState } from 'react';
import { type ColorScale, rampEnds } from '../charts/color-scale';
import { HeatmapGrid } from '../charts/HeatmapGrid';
import { cellPlace, type Heatmap } from '../charts/heatmap-data';
import { GAP, headHeight, isUncertain } from '../charts/heatmap-paint';
import { rangeOf, type ShownMetric, valueText } from '../charts/measured';
import { LinkButton } from '../parts/Button';
import { Cut, RunLetter, runColor } from '../parts/Section';
import { setView, toggleSelected } from '../state/studio';
import { useNarrow, useStudio, useStudioState } from '../studio-context';
import { type CanvasColumn, type CanvasView, depthOf, meanText, notePredicted } from './columns';

/** Units of the drawing across; it is stretched to the room there is. */
const WIDTH = 200;

interface DepthPlotProps {
  view: CanvasView;
  /** Heights of rows, and of the heads of the other columns. */
  cell: number;
  heads: number;
}

/** The mean of every layer, a line a run, beside the rows of the canvas. */
function DepthPlot({ view, cell, heads }: DepthPlotProps) {
  const { columns, metric, grid } = view;
  const pitch = cell + GAP;
  const height = Math.max(1, grid.layers.length * pitch - GAP);
  const { lines, chance, ends, path } = depthOf(view, columns);
  const drawn = (points: (typeof lines)[number]) => path(points, WIDTH, (row) => row * pitch + cell / 2);
  return (
    <figure className="layers-block layers-depth stack tight">
      <figcaption className="row tight small quiet">
        <span className="truncate">Mean by layer</span>
      </figcaption>
      <div
        className="row spread low depth-axis small quiet"
        style={{ height: heads }}
        data-bands={view.bands.length > 0 || undefined}
      >
        {ends.map((end, i) => (
          <span key={i === 0 ? 'from' : 'to'}>{end}</span>
        ))}
      </div>
      <svg
        className="depth-plot"
        viewBox={`0 0 ${WIDTH} ${height}`}
        preserveAspectRatio="none"
        style={{ height }}
        role="img"
        aria-label={columns
          .flatMap(({ letter }, i) => {
            if (lines[i]!.length === 0) return [];
            const { least, most } = rangeOf(lines[i]!.map((p) => p.value));
            return `${letter}: means of layers from ${metric.format(least)} to ${metric.format(most)}`;
          })
          .join('; ')}
      >
        {chance.length > 0 ? <polyline className="depth-chance" points={drawn(chance)} /> : null}
        {columns.map(({ id }, i) => (
          <polyline key={id} className="depth-line" style={runColor(i)} points={drawn(lines[i]!)} />
        ))}
      </svg>
    </figure>
  );
}

/** Rows of a small model are no taller than this, those of a large one no lower than that, in pixels. */
const ROW = { most: 24, least: 7 };
/** Height of heads that lie. */
const HEAD = 14;

/** Blocks in a row where there is little room; the same as in `layers.css`. */
const PER_ROW = 2;

/** The columns side by side on one scale, their difference, and the means of their layers; rows are shared by all. */
export function LayersCanvas({ view }: { view: CanvasView }) {
  const studio = useStudio();
  const root = useRef<HTMLDivElement>(null);
  const expanded = useStudioState((s) => s.view.expanded);
  const narrow = useNarrow();
  const { columns, difference, grid, metric, scale } = view;
  // heads lie where one block has all the room, and stand elsewhere, as on a phone, beside the means
  const isFlat = columns.length === 1 && grid.modules.every(({ label }) => label.length <= 8) && !narrow;
  const heads = isFlat ? HEAD : headHeight(grid);
  const cell = useRowHeight(root, grid.layers.length, heads);
  const open = useCallback(
    (name: string) => {
      const all = grid.layers.flatMap(({ tensors }) => tensors);
      const folded = all.find((tensor) => tensor?.name === name && tensor.members);
      if (folded) setView(studio, { expanded: folded.module });
      else toggleSelected(studio, name);
    },
    [studio, grid],
  );
  const drawn = columns.filter(({ why }) => !why);
  const blocks = [
    ...columns.map((column, i) => ({ ...column, place: i, metric, scale })),
    ...(difference
      ? [
          {
            id: 'difference',
            letter: 'B − A',
            place: -1,
            title: '',
            note: notePredicted(columns),
            ...difference,
          },
        ]
      : []),
  ];
  return (
    <div className="stack" ref={root}>
      {expanded === null ? null : (
        <p className="small">
          <code>{expanded}</code>, one a column.{' '}
          <LinkButton onClick={() => setView(studio, { expanded: null })}>Back to all modules</LinkButton>
        </p>
      )}
      <div
        className="layers-blocks"
        data-stacked={expanded !== null || undefined}
        data-single={isFlat || undefined}
        style={{ '--blocks': blocks.length } as CSSProperties}
      >
        {blocks.map(({ id, letter, place, title, note, data, why = null, metric: of, scale: colors }, i) => (
          <Block
            key={id}
            {...{ letter, place, title, note, data, why, cell, heads }}
            metric={of}
            scale={colors}
            grid={grid}
            bands={view.bands}
            numbered={
              i % (narrow ? PER_ROW : blocks.length) === 0 || !!blocks[i - 1]?.why || expanded !== null
            }
            onOpen={open}
          />
        ))}
        {expanded === null ? <DepthPlot view={view} cell={cell} heads={heads} /> : null}
      </div>
      <div className="row wrap apart">
        {scale.flat ? null : (
          <LegendOf
            metric={metric}
            scale={scale}
            label={columns.length > 1 ? drawn.map(({ letter }) => letter).join(', ') : metric.label}
          />
        )}
        {difference && !difference.why && !difference.scale.flat ? (
          <LegendOf metric={difference.metric} scale={difference.scale} label="B − A" />
        ) : null}
        {columns[0]?.data.rows.some(({ layer }) => columns[0]!.chanceOf?.(layer) != null) ? (
          <span className="depth-chance-key small quiet">random masks of the same size</span>
        ) : null}
        <Readout view={view} />
      </div>
    </div>
  );
}

interface BlockProps
  extends Pick<CanvasColumn, 'letter' | 'title' | 'note' | 'data'>,
    Pick<CanvasView, 'metric' | 'scale' | 'grid' | 'bands'> {
  place: number;
  cell: number;
  /** Height of the heads. */
  heads: number;
  numbered: boolean;
  why: string | null;
  onOpen(name: string): void;
}

const Block = memo(function Block(props: BlockProps) {
  const { letter, place, title, note, why, cell, numbered, ...grid } = props;
  const { data, metric } = grid;
  const titleId = useId();
  return (
    <figure className="layers-block stack tight">
      <figcaption id={titleId} className="row tight small" title={title}>
        <RunLetter place={place}>{letter}</RunLetter>
        {title === '' ? null : <Cut text={title} />}
        <span className="visually-hidden">, {metric.label} by layer and module</span>
        <span className="small quiet end">{why === null ? meanText({ note, data, metric }) : ''}</span>
      </figcaption>
      {why === null ? (
        <HeatmapGrid labelledBy={titleId} {...grid} arrangement={numbered ? NUMBERED[cell]! : BARE[cell]!} />
      ) : (
        <p className="empty small">{why}</p>
      )}
    </figure>
  );
});

// the same objects for the same heights: a block that has no news is not drawn again
const heights = Array.from({ length: ROW.most + 1 }, (_, cell) => cell);
const NUMBERED = heights.map((cell) => ({ numbers: true, cell }));
const BARE = heights.map((cell) => ({ numbers: false, cell }));

/** The color ramp with its ends, and the number it stands for. */
function LegendOf({ metric, scale, label }: { metric: ShownMetric; scale: ColorScale; label: string }) {
  const [low, high] = rampEnds(metric, scale);
  return (
    <div className="row tiny quiet nowrap legend">
      <span className="small quiet">{label}</span>
      <span>{low}</span>
      <span
        className="ramp"
        style={{ backgroundImage: `linear-gradient(90deg, ${scale.ramp.join(', ')})` }}
      />
      <span>{high}</span>
    </div>
  );
}

/** Values in every run of the cell under the pointer or focus. */
function Readout({ view: { columns, difference, metric, scale } }: { view: CanvasView }) {
  const name = useStudioState((s) => s.view.hovered ?? s.view.selected);
  const cells = columns.map(({ letter, data }) => ({
    letter,
    cell: name === null ? null : cellOf(data, name),
  }));
  const first = cells.find(({ cell }) => cell)?.cell;
  const delta = difference && name !== null ? cellOf(difference.data, name)?.measured : null;
  return (
    <p className="row wrap tiny quiet layers-readout" aria-hidden="true">
      {first ? (
        <>
          <span>{cellPlace(first)}</span>
          {cells.map(({ letter, cell }) =>
            cell?.measured ? (
              <span key={letter}>
                {columns.length > 1 ? `${letter} ` : ''}
                {valueText(metric, cell.measured)}
              </span>
            ) : null,
          )}
          {delta && difference ? <span>B − A {valueText(difference.metric, delta)}</span> : null}
        </>
      ) : (
        <span className="faint">
          Point at a cell to read it.{' '}
          {columns.some(({ data }) => hatched(data, metric, scale))
            ? 'Hatched: the error is larger than a step of color. '
            : ''}
          {difference && hatched(difference.data, difference.metric, difference.scale)
            ? 'Hatched in B − A: no larger than its error.'
            : ''}
        </span>
      )}
    </p>
  );
}

function hatched({ rows }: Heatmap, metric: ShownMetric, scale: ColorScale): boolean {
  return rows.some(({ cells }) => cells.some((c) => c?.measured && isUncertain(c.measured, metric, scale)));
}

function cellOf(data: Heatmap, name: string) {
  for (const row of data.rows) {
    const found = row.cells.find((c) => c?.name === name);
    if (found) return found;
  }
  return null;
}

/** Height of a row at which all of them fit below the parts above the canvas. */
function useRowHeight(root: { current: HTMLElement | null }, rows: number, heads: number): number {
  const [room, setRoom] = useState(420);
  useLayoutEffect(() => {
    const screen = root.current?.closest<HTMLElement>('.tab-content') ?? root.current?.parentElement;
    const above = root.current?.parentElement;
    if (!screen || !above) return;
    const observer = new ResizeObserver(() => {
      // at the top of the page: a scrolled one has no other rows
      const top = (root.current?.offsetTop ?? 0) - above.offsetTop;
      setRoom(screen.clientHeight - Math.min(Math.max(0, top), screen.clientHeight / 2));
    });
    observer.observe(screen);
    observer.observe(above);
    return () => observer.disconnect();
  }, [root]);
  // captions, heads, bands and legends, and the space between them
  const left = room - heads - 24 - 16 - 64;
  return Math.min(ROW.most, Math.max(ROW.least, Math.floor(left / Math.max(1, rows)) - GAP));
}
