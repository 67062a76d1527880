/** Paints the values of a heatmap: one canvas a chart, so that a step of a slider changes no element of the page. */
import { type ColorScale, wantsLightText } from './color-scale';
import type { Cell, Heatmap } from './heatmap-data';
import type { HeatmapLayout } from './heatmap-layout';
import { type Corner, corner, type Edges, emptyPixels, fillRow, type Pixels, wordOf } from './heatmap-pixels';
import type { Measured } from './measured';
import type { ShownMetric } from './metrics';

/** Inks of the canvas, from the style sheet. */
export interface HeatmapInks {
  /** `11px Inter` */
  font: string;
  text: string;
  bar: string;
  track: string;
}

export interface HeatmapPicture {
  data: Heatmap;
  metric: ShownMetric;
  scale: ColorScale;
  /** Writes the value into each cell where there is room. */
  annotated: boolean;
}

const RADIUS = 2;
const SQUARE: Corner = [];
/** Inks last set on a canvas, which forgets its font when its size changes. */
const lastInks = new WeakMap<CanvasRenderingContext2D, HeatmapInks>();
/** Ink of values in cells, on dark colors and on light ones. */
const VALUE_INKS = ['#fff', '#16140f'] as const;

/**
 * Paints measured cells, the bars of the means and the values of the tensors of no layer. Cells without a value are
 * left to the style sheet.
 * @param ratio device pixels a CSS pixel has: edges lie on whole ones, as those of elements do
 * @param old the picture that this canvas showed before
 * @returns the picture it shows now
 */
export function paintHeatmap(
  context: CanvasRenderingContext2D,
  picture: HeatmapPicture,
  layout: HeatmapLayout,
  inks: HeatmapInks,
  ratio: number,
  old: Pixels | null,
): Pixels {
  const { width, height } = context.canvas;
  const pixels = emptyPixels(width, height, old);
  paintBoxes(pixels, picture, layout, inks, ratio);
  context.putImageData(pixels.image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = 'middle';
  // to set it is to ask for the page's styles, which a step has just changed
  if (pixels !== old || inks !== lastInks.get(context)) context.font = inks.font;
  lastInks.set(context, inks);
  paintHatches(context, picture, layout);
  if (picture.annotated) paintValues(context, picture, layout);
  const { data, metric } = picture;
  context.textAlign = 'right';
  context.fillStyle = inks.text;
  for (const [i, { measured }] of data.loose.entries()) {
    if (measured) context.fillText(metric.format(measured.value), layout.width, layout.looseTop(i) + 8);
  }
  return pixels;
}

function paintBoxes(
  pixels: Pixels,
  { data, metric, scale }: HeatmapPicture,
  layout: HeatmapLayout,
  inks: HeatmapInks,
  ratio: number,
): void {
  const snap = (at: number) => Math.round(at * ratio);
  const between = (top: number, height: number): Edges => ({ top: snap(top), bottom: snap(top + height) });
  const rounded = roundedAt(RADIUS * ratio);
  const lefts = (data.rows[0]?.cells ?? [0]).map((_, j) => snap(layout.left(j)));
  const rights = lefts.map((_, j) => snap(layout.left(j) + layout.cellWidth));
  const cells = (row: readonly (Cell | null)[], edges: Edges) => {
    const boxes: number[] = [];
    for (let j = 0; j < row.length; j++) {
      const measured = row[j]?.measured;
      if (measured) boxes.push(lefts[j]!, rights[j]!, wordOf(scale.color(measured.value)));
    }
    fillRow(pixels, edges, boxes, rounded);
  };
  const [track, bar] = [wordOf(inks.track), wordOf(inks.bar)];
  const [meanLeft, meanRight] = [snap(layout.meanLeft), snap(layout.meanLeft + layout.meanWidth)];
  for (const [i, { cells: row, mean }] of data.rows.entries()) {
    const top = layout.top(i);
    cells(row, between(top, layout.cellHeight));
    if (layout.meanWidth === 0) continue;
    const edges = between(top + (layout.cellHeight - layout.meanHeight) / 2, layout.meanHeight);
    fillRow(pixels, edges, [meanLeft, meanRight, track], rounded);
    const [from, to] = barEnds(mean, metric, scale).map((end) =>
      snap(layout.meanLeft + end * layout.meanWidth),
    );
    if (to! > from!) fillRow(pixels, edges, [from!, to!, bar], SQUARE);
  }
  for (const [i, at] of data.loose.entries()) cells([at], between(layout.looseTop(i), layout.looseHeight));
}

let corners: { radius: number; of: Corner } | undefined;

function roundedAt(radius: number): Corner {
  if (corners?.radius !== radius) corners = { radius, of: corner(radius) };
  return corners.of;
}

/** A part of the scale whose colors differ visibly from the next. */
const STEP = 1 / 8;

/**
 * Whether a cell is uncertain: its error is larger than a step of color, so that it may be of another step;
 * a difference, whose sign is what matters, is no larger than its error.
 */
export function isUncertain(
  { value, error }: Measured,
  { diverging }: ShownMetric,
  scale: ColorScale,
): boolean {
  return error > (diverging ? Math.abs(value) : (scale.max - scale.min) * STEP);
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
  { data, metric, scale }: HeatmapPicture,
  layout: HeatmapLayout,
): void {
  if (layout.cellHeight < LINE) return;
  context.textAlign = 'center';
  const text = layout.wide ? metric.format : (metric.short ?? metric.format);
  const fits = (cell: Cell | null) =>
    !cell?.measured || text(cell.measured.value).length * DIGIT <= layout.cellWidth - 2;
  // numbers in some cells only would look meaningful
  if (!data.rows.every(({ cells }) => cells.every(fits))) return;
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

/** Where the bar of a mean begins and ends, as shares of the scale; a signed one begins at 0. */
function barEnds(mean: number | null, metric: ShownMetric, { min, max }: ColorScale): [number, number] {
  const at = (value: number) => (Math.min(max, Math.max(min, value)) - min) / (max - min);
  const from = metric.diverging ? at(0) : 0;
  const to = mean === null ? from : at(mean);
  return [Math.min(from, to), Math.max(from, to)];
}
