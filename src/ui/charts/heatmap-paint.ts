/**
 * Paints the values of a heatmap: one canvas a chart, so that a step of a slider changes no element of the page. Boxes have
 * square corners on whole pixels: hundreds of paths a chart cost a step more than all else that it does.
 */
import { type ColorScale, wantsLightText } from './color-scale';
import type { Cell, Heatmap, LayerGrid } from './heatmap-data';
import type { Measured, ShownMetric } from './measured';

// ---------------------------------------------------------------- layout

/** Between cells, both ways. In pixels, as everything here; the same tracks as in `charts.css`. */
export const GAP = 2;
const NUMBER_WIDTH = 18;
const LEAST_CELL_WIDTH = 3;

/** Parts that a grid shows, and its row height: blocks of one canvas share numbers. */
export interface Arrangement {
  /** The numbers of the layers on the left. */
  numbers: boolean;
  /** Height of a row. */
  cell: number;
}

interface HeatmapLayout {
  width: number;
  height: number;
  cellWidth: number;
  cellHeight: number;
  /** Left edge of a column, top edge of a row. */
  left(column: number): number;
  top(row: number): number;
}

/** The layout of a chart so many pixels wide. */
export function heatmapLayout(
  rows: number,
  columns: number,
  available: number,
  { numbers, cell }: Arrangement,
): HeatmapLayout {
  const numberTrack = numbers ? NUMBER_WIDTH : 0;
  const fixed = numberTrack + GAP * columns;
  const cellWidth = Math.max(LEAST_CELL_WIDTH, (available - fixed) / Math.max(1, columns));
  const top = (row: number) => row * (cell + GAP);
  return {
    width: fixed + cellWidth * columns,
    height: top(rows) - GAP,
    cellWidth,
    cellHeight: cell,
    left: (column) => numberTrack + GAP + column * (cellWidth + GAP),
    top,
  };
}

/** Room for the longest column head, written upright. */
export function headHeight(grid: LayerGrid): number {
  const longest = Math.max(4, ...grid.modules.map((m) => m.label.length));
  return Math.min(110, Math.round(longest * 6) + 8);
}

// ---------------------------------------------------------------- painting

export interface HeatmapPicture {
  data: Heatmap;
  metric: ShownMetric;
  scale: ColorScale;
}

/** Font and size last set on a canvas, which forgets the font when its size changes. */
const lastFont = new WeakMap<CanvasRenderingContext2D, string>();
/** Ink of values in cells, on dark colors and on light ones. */
const VALUE_INKS = ['#fff', '#16140f'] as const;

/**
 * Paints measured cells. Cells without a value are left to the style sheet.
 * @param font `11px Inter`, from the style sheet
 * @param ratio device pixels a CSS pixel has: edges lie on whole ones, as those of elements do
 */
export function paintHeatmap(
  context: CanvasRenderingContext2D,
  picture: HeatmapPicture,
  layout: HeatmapLayout,
  font: string,
  ratio: number,
): void {
  const { width, height } = context.canvas;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, width, height);
  paintBoxes(context, picture, layout, ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = 'middle';
  const of = `${font} ${width} ${height}`;
  // to set it is to ask for the page's styles, which a step has just changed
  if (of !== lastFont.get(context)) context.font = font;
  lastFont.set(context, of);
  paintHatches(context, picture, layout);
  paintValues(context, picture, layout);
}

function paintBoxes(
  context: CanvasRenderingContext2D,
  { data: { rows }, scale }: HeatmapPicture,
  layout: HeatmapLayout,
  ratio: number,
): void {
  const snap = (at: number) => Math.round(at * ratio);
  for (const [i, { cells }] of rows.entries()) {
    const [top, bottom] = [snap(layout.top(i)), snap(layout.top(i) + layout.cellHeight)];
    for (const [j, cell] of cells.entries()) {
      if (!cell?.measured) continue;
      const left = snap(layout.left(j));
      context.fillStyle = scale.color(cell.measured.value);
      context.fillRect(left, top, snap(layout.left(j) + layout.cellWidth) - left, bottom - top);
    }
  }
}

/**
 * Whether a cell is uncertain: its error is larger than a step of color, so that it may be of another step;
 * a difference, whose sign is what matters, is no larger than its error.
 */
export function isUncertain(
  { value, error }: Measured,
  { diverging }: ShownMetric,
  scale: ColorScale,
): boolean {
  return !scale.flat && error > (diverging ? Math.abs(value) : scale.step);
}

function paintHatches(
  context: CanvasRenderingContext2D,
  { data, metric, scale }: HeatmapPicture,
  layout: HeatmapLayout,
): void {
  const lines = new Path2D();
  let some = false;
  for (const [i, row] of data.rows.entries()) {
    const top = layout.top(i);
    for (const [j, at] of row.cells.entries()) {
      if (!at?.measured || !isUncertain(at.measured, metric, scale)) continue;
      some = true;
      const left = layout.left(j);
      const [w, h] = [layout.cellWidth, layout.cellHeight];
      for (let d = 3; d < w + h; d += 5) {
        lines.moveTo(left + Math.max(0, d - h), top + Math.min(h, d));
        lines.lineTo(left + Math.min(w, d), top + Math.max(0, d - w));
      }
    }
  }
  if (!some) return;
  context.lineWidth = 1;
  context.strokeStyle = HATCH;
  context.stroke(lines);
}

const HATCH = 'rgba(255, 255, 255, 0.55)';
/** About the width of a digit, in pixels, and the height a line of values needs. */
const DIGIT = 6;
const LINE = 16;

/** Writes the values into the cells where all of them fit: first those on dark colors, then the others. */
function paintValues(
  context: CanvasRenderingContext2D,
  picture: HeatmapPicture,
  layout: HeatmapLayout,
): void {
  const text = valueTexts(picture, layout.cellWidth / DIGIT, layout.cellHeight >= LINE);
  if (!text) return;
  const { data, scale } = picture;
  context.textAlign = 'center';
  for (const [dark, ink] of VALUE_INKS.entries()) {
    context.fillStyle = ink;
    for (const [i, row] of data.rows.entries()) {
      const y = layout.top(i) + layout.cellHeight / 2;
      for (const [j, at] of row.cells.entries()) {
        if (!at?.measured || wantsLightText(scale.color(at.measured.value)) === (dark === 1)) continue;
        context.fillText(text(at.measured.value), layout.left(j) + layout.cellWidth / 2, y);
      }
    }
  }
}

/**
 * The text of a value in its cell; null where not all fit, since numbers in some cells only would look meaningful, and where
 * all are one number.
 * @param room digits that fit side by side
 * @param fitsLine a line of text fits into the height of a cell
 */
export function valueTexts(
  { data, metric, scale }: HeatmapPicture,
  room: number,
  fitsLine: boolean,
): ((value: number) => string) | null {
  const text = (value: number) => metric.short(value, scale.step);
  // a sign is wider than a digit
  const width = (words: string) => words.length + (/^[+−]/.test(words) ? 0.5 : 0);
  const fits = (cell: Cell | null) => !cell?.measured || width(text(cell.measured.value)) <= room - 0.3;
  const all = fitsLine && !scale.flat && data.rows.every(({ cells }) => cells.every(fits));
  return all ? text : null;
}
