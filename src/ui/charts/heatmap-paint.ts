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
  // all of one colour at once: a fill costs more than what it fills
  const fills = new Map<string, Path2D>();
  const box = (x: number, y: number, width: number, height: number, colour: string, radius: number) => {
    const [left, top] = [snap(x), snap(y)];
    const path = fills.get(colour) ?? new Path2D();
    fills.set(colour, path);
    path.roundRect(left, top, snap(x + width) - left, snap(y + height) - top, radius);
  };
  const fill = () => {
    for (const [colour, path] of fills) {
      context.fillStyle = colour;
      context.fill(path);
    }
    fills.clear();
  };
  const cell = (at: Cell | null, x: number, y: number, height: number) => {
    if (at?.measured) box(x, y, layout.cellWidth, height, scale.color(at.measured.value), RADIUS);
  };

  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  for (const [i, row] of data.rows.entries()) {
    const top = layout.top(i);
    for (const [j, at] of row.cells.entries()) cell(at, layout.left(j), top, layout.cellHeight);
    box(layout.meanLeft, meanTop(top, layout), layout.meanWidth, layout.meanHeight, inks.track, RADIUS);
  }
  for (const [i, at] of data.loose.entries()) {
    cell(at, layout.left(0), layout.looseTop(i), layout.looseHeight);
  }
  fill();
  for (const [i, row] of data.rows.entries()) {
    const [from, to] = barEnds(row.mean, metric, scale);
    if (to <= from) continue;
    const begin = layout.meanLeft + from * layout.meanWidth;
    const length = (to - from) * layout.meanWidth;
    box(begin, meanTop(layout.top(i), layout), length, layout.meanHeight, inks.bar, 0);
  }
  fill();
  context.font = inks.font;
  context.textBaseline = 'middle';
  if (annotated && layout.wide) {
    context.textAlign = 'center';
    const known = new Map<string, boolean>();
    const lightOn = (colour: string) => {
      const light = known.get(colour) ?? wantsLightText(colour);
      known.set(colour, light);
      return light;
    };
    for (const [i, row] of data.rows.entries()) {
      const y = layout.top(i) + layout.cellHeight / 2;
      for (const [j, at] of row.cells.entries()) {
        if (!at?.measured) continue;
        const { value } = at.measured;
        const light = lightOn(scale.color(value));
        context.fillStyle = light ? '#fff' : '#16140f';
        context.fillText(metric.format(value), layout.left(j) + layout.cellWidth / 2, y);
      }
    }
  }
  context.textAlign = 'right';
  context.fillStyle = inks.text;
  for (const [i, { measured }] of data.loose.entries()) {
    if (measured) context.fillText(metric.format(measured.value), layout.width, layout.looseTop(i) + 8);
  }
}

/** Top of the bar of a row's mean. */
function meanTop(top: number, { cellHeight, meanHeight }: HeatmapLayout): number {
  return top + (cellHeight - meanHeight) / 2;
}

/** Where the bar of a mean begins and ends, as shares of the scale; a signed one begins at 0. */
function barEnds(mean: number | null, metric: ShownMetric, { min, max }: ColorScale): [number, number] {
  const at = (value: number) => (Math.min(max, Math.max(min, value)) - min) / (max - min);
  const from = metric.diverging ? at(0) : 0;
  const to = mean === null ? from : at(mean);
  return [Math.min(from, to), Math.max(from, to)];
}
