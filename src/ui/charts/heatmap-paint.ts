/**
 * Paints the values of a heatmap: one canvas a chart, so that a step of a slider changes no element of the page. Boxes are set
 * pixel by pixel: hundreds of paths a chart cost a step more than all else that it does; rows of equal boxes are runs of equal
 * words.
 */
import { type ColorScale, channelsOf, wantsLightText } from './color-scale';
import type { Cell, Heatmap, LayerGrid } from './heatmap-data';
import type { Measured } from './measured';
import type { ShownMetric } from './shown-metric';

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

const RADIUS = 2;
/** Font last set on a canvas, which forgets it when its size changes. */
const lastFont = new WeakMap<CanvasRenderingContext2D, string>();
/** Ink of values in cells, on dark colors and on light ones. */
const VALUE_INKS = ['#fff', '#16140f'] as const;

/**
 * Paints measured cells. Cells without a value are left to the style sheet.
 * @param font `11px Inter`, from the style sheet
 * @param ratio device pixels a CSS pixel has: edges lie on whole ones, as those of elements do
 * @param old the picture that this canvas showed before
 * @returns the picture it shows now
 */
export function paintHeatmap(
  context: CanvasRenderingContext2D,
  picture: HeatmapPicture,
  layout: HeatmapLayout,
  font: string,
  ratio: number,
  old: Pixels | null,
): Pixels {
  const { width, height } = context.canvas;
  const pixels = emptyPixels(width, height, old);
  paintBoxes(pixels, picture, layout, ratio);
  context.putImageData(pixels.image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = 'middle';
  // to set it is to ask for the page's styles, which a step has just changed
  if (pixels !== old || font !== lastFont.get(context)) context.font = font;
  lastFont.set(context, font);
  paintHatches(context, picture, layout);
  paintValues(context, picture, layout);
  return pixels;
}

function paintBoxes(
  pixels: Pixels,
  { data: { rows }, scale }: HeatmapPicture,
  layout: HeatmapLayout,
  ratio: number,
): void {
  const snap = (at: number) => Math.round(at * ratio);
  const rounded = roundedAt(RADIUS * ratio);
  const lefts = (rows[0]?.cells ?? []).map((_, j) => snap(layout.left(j)));
  const rights = lefts.map((_, j) => snap(layout.left(j) + layout.cellWidth));
  for (const [i, { cells }] of rows.entries()) {
    const top = layout.top(i);
    const boxes: number[] = [];
    for (let j = 0; j < cells.length; j++) {
      const measured = cells[j]?.measured;
      if (measured) boxes.push(lefts[j]!, rights[j]!, wordOf(scale.color(measured.value)));
    }
    fillRow(pixels, snap(top), snap(top + layout.cellHeight), boxes, rounded);
  }
}

let corners: { radius: number; of: Corner } | undefined;

function roundedAt(radius: number): Corner {
  if (corners?.radius !== radius) corners = { radius, of: corner(radius) };
  return corners.of;
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
  const fits = (cell: Cell | null) => !cell?.measured || text(cell.measured.value).length <= room - 0.3;
  const all = fitsLine && !scale.flat && data.rows.every(({ cells }) => cells.every(fits));
  return all ? text : null;
}

// ---------------------------------------------------------------- pixels

/** A picture to put on a canvas: a word a pixel, red in the lowest byte (every machine that runs this is little-endian). */
export interface Pixels {
  image: ImageData;
  words: Uint32Array;
  width: number;
}

/** An empty picture; `old` where its size fits. */
function emptyPixels(width: number, height: number, old: Pixels | null): Pixels {
  if (old?.width === width && old.image.height === height) {
    old.words.fill(0);
    return old;
  }
  const image = new ImageData(width, height);
  return { image, words: new Uint32Array(image.data.buffer), width };
}

/** How much of the pixels at a rounded corner is covered, for the upper left one; whole pixels are left out. */
type Corner = readonly { x: number; y: number; covered: number }[];

/** @param radius device pixels */
function corner(radius: number): Corner {
  const FINE = 8;
  const side = Math.ceil(radius);
  const pixels: { x: number; y: number; covered: number }[] = [];
  for (let i = 0; i < side * side; i++) {
    const [x, y] = [i % side, Math.floor(i / side)];
    let inside = 0;
    for (let j = 0; j < FINE * FINE; j++) {
      const across = radius - x - ((j % FINE) + 0.5) / FINE;
      const down = radius - y - (Math.floor(j / FINE) + 0.5) / FINE;
      if (across <= 0 || down <= 0 || Math.hypot(across, down) <= radius) inside++;
    }
    const covered = inside / FINE ** 2;
    if (covered < 1) pixels.push({ x, y, covered });
  }
  return pixels;
}

/** Fills boxes of one row: `boxes` holds left, right and word of each, in device pixels; right and bottom are outside. */
function fillRow(
  { words, width }: Pixels,
  top: number,
  bottom: number,
  boxes: readonly number[],
  rounded: Corner,
): void {
  const start = top * width;
  for (let b = 0; b < boxes.length; b += 3)
    words.fill(boxes[b + 2]!, start + boxes[b]!, start + boxes[b + 1]!);
  if (boxes.length === 0) return;
  const [from, to] = [start + boxes[0]!, start + boxes.at(-2)!];
  for (let y = 1; y < bottom - top; y++) words.copyWithin(from + y * width, from, to);
  for (const { x, y, covered } of rounded) {
    const upper = start + y * width;
    const lower = (bottom - 1 - y) * width;
    for (let b = 0; b < boxes.length; b += 3) {
      const word = boxes[b + 2]!;
      const edge = (word & 0xffffff) | (Math.round((word >>> 24) * covered) << 24);
      const [left, right] = [boxes[b]! + x, boxes[b + 1]! - 1 - x];
      words[upper + left] = edge;
      words[upper + right] = edge;
      words[lower + left] = edge;
      words[lower + right] = edge;
    }
  }
}

const known = new Map<string, number>();
const MOST_KNOWN = 4096;

/** The word of a color: `#440154`, or `rgb(…)` and `rgba(…)` as style sheets and scales write them. */
function wordOf(color: string): number {
  const found = known.get(color);
  if (found !== undefined) return found;
  const [r = 0, g = 0, b = 0, alpha = 1] = channelsOf(color);
  const word = (r | (g << 8) | (b << 16) | (Math.round(alpha * 255) << 24)) >>> 0;
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(color, word);
  return word;
}
