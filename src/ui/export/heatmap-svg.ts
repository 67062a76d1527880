/** Sets of heatmaps as one SVG text: for files and reports, so in the colours of paper and without scripts. Pure. */

import { escapeMarkup } from '../../formats/html-page';
import { type Cell, cellText, rowLabel } from '../charts/heatmap-data';
import type { ChartSet } from './chart-sets';

/** In SVG units, which are CSS pixels. */
const CELL = { width: 34, height: 16, gap: 1 };
const MARGIN = 20;
const LABELS = 30;
const HEADS = 84;
const TITLE = 24;
const LEGEND = 40;
const BETWEEN = 28;
const FONT = "font-family='system-ui, sans-serif'";
const INK = '#1d1b17';
const QUIET = '#57524a';
const HOLE = '#efede8';

/** A set below the other, the charts of each side by side. Every cell says its value in a `<title>`. */
export function heatmapSvg(sets: readonly ChartSet[]): string {
  const drawn = sets.map(drawSet);
  const width = Math.max(320, ...drawn.map((set) => set.width)) + 2 * MARGIN;
  let y = MARGIN;
  const parts = drawn.map(({ markup, height }) => {
    const placed = `<g transform='translate(${MARGIN} ${y})'>${markup}</g>`;
    y += height + BETWEEN;
    return placed;
  });
  const height = y - BETWEEN + MARGIN;
  return [
    `<svg xmlns='http://www.w3.org/2000/svg' width='${width}' height='${height}' viewBox='0 0 ${width} ${height}' role='img' ${FONT} font-size='11' fill='${INK}'>`,
    `<rect width='100%' height='100%' fill='#ffffff'/>`,
    ...parts,
    '</svg>',
  ].join('\n');
}

function drawSet(set: ChartSet): { markup: string; width: number; height: number } {
  const wide = LABELS + set.grid.modules.length * CELL.width;
  const rows = set.grid.layers.length + set.grid.loose.length;
  const high = TITLE + HEADS + rows * CELL.height + LEGEND;
  const charts = set.charts.map(
    (chart, i) =>
      `<g transform='translate(${i * (wide + BETWEEN)} ${TITLE})'>${drawChart(set, chart, wide)}</g>`,
  );
  const title = `<text y='12' font-size='13' font-weight='600'>${escapeMarkup(`${set.metric.label} · ${set.title}`)}</text>`;
  return {
    markup: [title, ...charts].join('\n'),
    width: Math.max(1, set.charts.length) * (wide + BETWEEN) - BETWEEN,
    height: high,
  };
}

function drawChart(set: ChartSet, { title, data }: ChartSet['charts'][number], wide: number): string {
  const { grid, metric, scale } = set;
  const mean = data.mean === null ? '' : `, mean ${metric.format(data.mean)}`;
  const heads = grid.modules.map(({ label }, i) => {
    const x = LABELS + (i + 0.5) * CELL.width + 4;
    return `<text transform='translate(${x} ${HEADS - 6}) rotate(-60)' fill='${QUIET}'>${escapeMarkup(label)}</text>`;
  });
  const cell = (value: Cell | null, x: number, y: number) => {
    const measured = value?.measured;
    const fill = measured ? scale.color(measured.value) : HOLE;
    const words = value ? `<title>${escapeMarkup(cellText(value, metric))}</title>` : '';
    return `<rect x='${x}' y='${y}' width='${CELL.width - CELL.gap}' height='${CELL.height - CELL.gap}' fill='${fill}'>${words}</rect>`;
  };
  const rows = data.rows.map((row, r) => {
    const y = HEADS + r * CELL.height;
    const name = `<text x='${LABELS - 6}' y='${y + 11}' text-anchor='end' fill='${QUIET}'>${escapeMarkup(rowLabel(row))}</text>`;
    return name + row.cells.map((c, i) => cell(c, LABELS + i * CELL.width, y)).join('');
  });
  const loose = data.loose.map((c, r) => {
    const y = HEADS + (data.rows.length + r) * CELL.height;
    const name = `<text x='${LABELS + CELL.width + 6}' y='${y + 11}' fill='${QUIET}'>${escapeMarkup(c.module)}</text>`;
    return cell(c, LABELS, y) + name;
  });
  const y = HEADS + (data.rows.length + data.loose.length) * CELL.height;
  return [
    `<text y='12' font-size='12'>${escapeMarkup(title + mean)}</text>`,
    ...heads,
    ...rows,
    ...loose,
    legend(set, LABELS, y + 14, wide - LABELS),
  ].join('\n');
}

/** The ramp as rectangles: gradients need ids, which several drawings on one page would share. */
function legend({ scale, metric }: ChartSet, x: number, y: number, width: number): string {
  const step = width / scale.ramp.length;
  const ramp = scale.ramp.map(
    (color, i) =>
      `<rect x='${(x + i * step).toFixed(2)}' y='${y}' width='${(step + 0.3).toFixed(2)}' height='6' fill='${color}'/>`,
  );
  return [
    ...ramp,
    `<text x='${x}' y='${y + 18}' fill='${QUIET}'>${escapeMarkup(metric.tick(scale.min))}</text>`,
    `<text x='${x + width}' y='${y + 18}' text-anchor='end' fill='${QUIET}'>${escapeMarkup(metric.tick(scale.max))}</text>`,
  ].join('');
}
