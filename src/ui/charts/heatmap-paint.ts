/** Paints the values of a heatmap: one canvas a chart, so that a step of a slider changes no element of the page. */
import { type ColorScale, wantsLightText } from './color-scale';
import type { Cell, Heatmap } from './heatmap-data';
import type { HeatmapLayout } from './heatmap-layout';
import type { ShownMetric } from './metrics';

/** What the style sheet says of the canvas. */
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

/**
 * Paints measured cells, the bars of the means and the values of the tensors of no layer. Cells without a value are
 * left to the style sheet.
 * @param ratio device pixels a CSS pixel has: edges lie on whole ones, as those of elements do
 */
export function paintHeatmap(
  context: CanvasRenderingContext2D,
  { data, metric, scale, annotated }: HeatmapPicture,
  layout: HeatmapLayout,
  inks: HeatmapInks,
  ratio: number,
): void {
  const snap = (value: number) => Math.round(value * ratio) / ratio;
  const box = (x: number, y: number, width: number, height: number, colour: string, radius: number) => {
    const [left, top] = [snap(x), snap(y)];
    context.fillStyle = colour;
    context.beginPath();
    context.roundRect(left, top, snap(x + width) - left, snap(y + height) - top, radius);
    context.fill();
  };
  const cell = (at: Cell | null, x: number, y: number, height: number) => {
    if (!at?.measured) return;
    const { value } = at.measured;
    const colour = scale.color(value);
    box(x, y, layout.cellWidth, height, colour, RADIUS);
    if (!annotated || !layout.wide) return;
    context.fillStyle = wantsLightText(colour) ? '#fff' : '#16140f';
    context.fillText(metric.format(value), x + layout.cellWidth / 2, y + height / 2);
  };

  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  context.font = inks.font;
  context.textBaseline = 'middle';
  context.textAlign = 'center';
  for (const [i, row] of data.rows.entries()) {
    const top = layout.top(i);
    for (const [j, at] of row.cells.entries()) cell(at, layout.left(j), top, layout.cellHeight);
    const middle = top + (layout.cellHeight - layout.meanHeight) / 2;
    const [from, to] = barEnds(row.mean, metric, scale);
    box(layout.meanLeft, middle, layout.meanWidth, layout.meanHeight, inks.track, RADIUS);
    if (to <= from) continue;
    const begin = layout.meanLeft + from * layout.meanWidth;
    box(begin, middle, (to - from) * layout.meanWidth, layout.meanHeight, inks.bar, 0);
  }
  for (const [i, at] of data.loose.entries()) {
    cell(at, layout.left(0), layout.looseTop(i), layout.looseHeight);
  }
  context.textAlign = 'right';
  context.fillStyle = inks.text;
  for (const [i, { measured }] of data.loose.entries()) {
    if (measured) context.fillText(metric.format(measured.value), layout.width, layout.looseTop(i) + 8);
  }
}

/** Where the bar of a mean begins and ends, as shares of the scale; a signed one begins at 0. */
function barEnds(mean: number | null, metric: ShownMetric, { min, max }: ColorScale): [number, number] {
  const at = (value: number) => (Math.min(max, Math.max(min, value)) - min) / (max - min);
  const from = metric.diverging ? at(0) : 0;
  const to = mean === null ? from : at(mean);
  return [Math.min(from, to), Math.max(from, to)];
}
