/**
 * The row of the Layers canvas as one figure for a paper: the runs on one scale, B − A, and the means of the layers, with the
 * axis of layers, the groups of modules, legends, one title and a caption. SVG in the colors of paper, without scripts. Pure.
 */
import { escapeMarkup } from '../../formats/html-page';
import { type ColorScale, rampEnds, scaleOver, wantsLightText } from '../charts/color-scale';
import { type Cell, cellText, rowLabel } from '../charts/heatmap-data';
import { isUncertain, valueTexts } from '../charts/heatmap-paint';
import type { Metric } from '../charts/metrics';
import {
  type CanvasColumn,
  type CanvasView,
  depthOf,
  differenceView,
  meanText,
  notePredicted,
} from '../layers/columns';

export interface Figure
  extends Pick<CanvasView<Metric>, 'metric' | 'grid' | 'bands' | 'scale' | 'difference'> {
  title: string;
  /** Sentences below the charts. */
  caption: readonly string[];
  charts: FigureChart[];
}

type FigureChart = Pick<CanvasColumn, 'title' | 'note' | 'data' | 'chanceOf'>;

/**
 * Charts on one scale.
 * @param isOfRuns of two also B − A around 0
 */
export function figureOf(
  view: Pick<Figure, 'metric' | 'grid' | 'bands' | 'title'>,
  charts: FigureChart[],
): Figure {
  const { metric } = view;
  const maps = charts.map(({ data }) => data);
  return {
    ...view,
    caption: [metric.meaning],
    charts,
    difference: differenceView(metric, maps, 'light'),
    scale: scaleOver(metric, maps, 'light'),
  };
}

// ---------------------------------------------------------------- drawing, in CSS pixels: 96 an inch

/** About ten inches; more where many modules need it. */
const WIDTH = 960;
const CELL = { least: 10, most: 44, gap: 1 };
const ROW = { least: 6, most: 18, all: 520 };
const MARGIN = 16;
const NUMBERS = 28;
const PROFILE = 110;
const BETWEEN = 18;
/** Room for the name of a chart of few modules. */
const NAME = 150;
const LINE = 15;
const DIGIT = 5.5;
const INK = '#1d1b17';
const QUIET = '#57524a';
const HOLE = '#efede8';
/** Of the lines of the runs, by their places: as on a light screen. */
const RUNS = ['#33302a', '#b5153c', '#00737d', '#5d6b00'];

interface Places {
  cell: number;
  row: number;
  /** Width of a chart, without the numbers of its layers. */
  chart: number;
  /** Top of the rows, below title and heads. */
  top: number;
  /** Height of all rows. */
  rows: number;
}

/** The figure as one SVG text. Every cell has its value in a `<title>`. */
export function figureSvg(figure: Figure): string {
  const { charts, difference, grid, bands, metric, scale } = figure;
  const blocks = [
    ...charts.map((chart) => ({ ...chart, metric, scale })),
    ...(difference ? [{ title: 'B − A', note: notePredicted(charts), ...difference }] : []),
  ];
  const columns = Math.max(1, grid.modules.length);
  const room = WIDTH - 2 * MARGIN - NUMBERS - PROFILE - blocks.length * BETWEEN;
  const cell = Math.min(CELL.most, Math.max(CELL.least, Math.floor(room / blocks.length / columns)));
  const stands = grid.modules.some(({ label }) => label.length * DIGIT > cell - 2);
  const heads = stands ? Math.max(...grid.modules.map(({ label }) => label.length)) * DIGIT + 6 : LINE;
  const row = Math.min(ROW.most, Math.max(ROW.least, Math.floor(ROW.all / Math.max(1, grid.layers.length))));
  const places: Places = {
    cell,
    row,
    chart: Math.max(columns * cell, Math.min(NAME, room / blocks.length)),
    top: 2 * LINE + 4 + (bands.length > 0 ? LINE + 6 : 0) + heads,
    rows: grid.layers.length * row,
  };
  const drawn = blocks.map((block, i) => {
    const x = NUMBERS + i * (places.chart + BETWEEN);
    const line = charts.length > 1 && i < charts.length ? RUNS[i % RUNS.length] : undefined;
    const parts = [drawChart(block, figure, places, stands, line), legend(block, places, i, charts.length)];
    return group(x, 0, parts);
  });
  const right = NUMBERS + blocks.length * (places.chart + BETWEEN);
  const width = Math.max(WIDTH, 2 * MARGIN + right + PROFILE);
  const words = figure.caption.flatMap((sentence) => wrapped(sentence, (width - 2 * MARGIN) / DIGIT));
  const below = places.top + places.rows + 3 * LINE;
  const height = 2 * MARGIN + below + words.length * LINE;
  return [
    `<svg xmlns='http://www.w3.org/2000/svg' width='${width}' height='${height}' viewBox='0 0 ${width} ${height}' role='img' font-family='system-ui, sans-serif' font-size='10' fill='${INK}'>`,
    `<rect width='100%' height='100%' fill='#ffffff'/>`,
    group(MARGIN, MARGIN, [
      text(0, 12, figure.title, `font-size='13' font-weight='600'`),
      ...layerAxis(figure, places),
      ...drawn,
      group(right, 0, layerMeans(figure, places)),
      ...words.map((line, i) => text(0, below + (i + 1) * LINE, line, `fill='${QUIET}'`)),
    ]),
    '</svg>',
  ].join('\n');
}

/** The numbers of the layers, as many as have room. */
function layerAxis({ grid }: Figure, { row, top }: Places): string[] {
  const every = row >= 10 ? 1 : 5;
  return [
    text(NUMBERS - 6, top - 4, 'layer', `text-anchor='end' fill='${QUIET}'`),
    ...grid.layers.flatMap((one, r) =>
      (one.other?.number ?? one.layer) % every === 0
        ? [
            text(
              NUMBERS - 6,
              top + r * row + row / 2 + 3.5,
              rowLabel(one),
              `text-anchor='end' fill='${QUIET}'`,
            ),
          ]
        : [],
    ),
  ];
}

type Block = FigureChart & { metric: Metric; scale: ColorScale };

/** @param line color of its line among the means of the layers */
function drawChart(
  block: Block,
  { grid, bands }: Figure,
  places: Places,
  stands: boolean,
  line: string | undefined,
): string {
  const { title, data, metric, scale } = block;
  const { cell, row, top } = places;
  const mean = data.mean === null ? '' : `, ${scale.flat ? 'everywhere' : 'mean'} ${meanText(block)}`;
  const at = line ? 13 : 0;
  const most = Math.max(2, Math.floor((places.chart - at) / DIGIT) - mean.length);
  const name = title.length > most ? `${title.slice(0, most - 1)}…` : title;
  let column = 0;
  const groups = bands.map(({ label, columns }) => {
    const [from, to] = [column * cell, (column + columns) * cell - CELL.gap];
    column += columns;
    return [
      `<rect x='${from}' y='${3 * LINE + 3}' width='${to - from}' height='1' fill='${QUIET}'/>`,
      text((from + to) / 2, 3 * LINE, label, `text-anchor='middle' fill='${QUIET}'`),
    ].join('');
  });
  const heads = grid.modules.map(({ label }, i) => {
    const x = (i + 0.5) * cell;
    return stands
      ? `<text transform='translate(${x + 3.5} ${top - 4}) rotate(-90)' fill='${QUIET}'>${escapeMarkup(label)}</text>`
      : text(x, top - 4, label, `text-anchor='middle' fill='${QUIET}'`);
  });
  const values = valueTexts(block, cell / DIGIT, row >= 12);
  const draw = (value: Cell | null, x: number, y: number) => {
    const measured = value?.measured;
    const fill = measured ? scale.color(measured.value) : HOLE;
    const said = value ? `<title>${escapeMarkup(cellText(value, metric))}</title>` : '';
    const [w, h] = [cell - CELL.gap, row - CELL.gap];
    const ink = wantsLightText(fill) ? '#ffffff' : INK;
    return [
      `<rect x='${x}' y='${y}' width='${w}' height='${h}' fill='${fill}'>${said}</rect>`,
      // a stroke across says what hatching says on screen
      measured && isUncertain(measured, metric, scale)
        ? `<path d='M${x} ${y + h}L${x + w} ${y}' stroke='${ink}' stroke-opacity='0.5' stroke-width='0.7'/>`
        : '',
      measured && values
        ? text(
            x + w / 2,
            y + h / 2 + 3,
            values(measured.value),
            `text-anchor='middle' font-size='9' fill='${ink}'`,
          )
        : '',
    ].join('');
  };
  return [
    line ? `<rect y='${LINE + 4}' width='9' height='9' fill='${line}'/>` : '',
    `<text x='${at}' y='${LINE + 12}'>${escapeMarkup(name + mean)}<title>${escapeMarkup(title)}</title></text>`,
    ...groups,
    ...heads,
    ...data.rows.map(({ cells }, r) => cells.map((c, i) => draw(c, i * cell, top + r * row)).join('')),
  ].join('\n');
}

/** The ramp as rectangles (gradients need ids, which several figures on one page would share): once for the runs, once for B − A. */
function legend({ scale, metric }: Block, { top, rows, chart }: Places, i: number, runs: number): string {
  if (scale.flat || (i > 0 && i < runs)) return '';
  const y = top + rows + 8;
  const step = chart / scale.ramp.length;
  const [low, high] = rampEnds(metric, scale);
  return [
    ...scale.ramp.map(
      (color, s) =>
        `<rect x='${(s * step).toFixed(2)}' y='${y}' width='${(step + 0.3).toFixed(2)}' height='6' fill='${color}'/>`,
    ),
    text(0, y + 18, low, `fill='${QUIET}'`),
    text(chart, y + 18, high, `text-anchor='end' fill='${QUIET}'`),
  ].join('');
}

/** The mean of every layer, a line a run. */
function layerMeans(figure: Figure, { row, top, rows }: Places): string[] {
  const { lines, chance, ends, path } = depthOf(figure, figure.charts);
  if (ends.length === 0) return [];
  const line = (points: (typeof lines)[number], look: string) =>
    `<polyline points='${path(points, PROFILE, (r) => top + r * row + row / 2)}' fill='none' stroke-width='1.5' ${look}/>`;
  return [
    text(0, LINE + 12, 'Mean by layer'),
    `<rect y='${top}' width='${PROFILE}' height='${Math.max(1, rows - CELL.gap)}' fill='#f7f5f0'/>`,
    ...(chance.length > 0 ? [line(chance, `stroke='${QUIET}' stroke-dasharray='4 3'`)] : []),
    ...lines.map((points, i) => line(points, `stroke='${RUNS[i % RUNS.length]}'`)),
    text(0, top + rows + 18, ends[0]!, `fill='${QUIET}'`),
    text(PROFILE, top + rows + 18, ends[1]!, `text-anchor='end' fill='${QUIET}'`),
  ];
}

function group(x: number, y: number, parts: readonly string[]): string {
  return `<g transform='translate(${x} ${y})'>${parts.join('\n')}</g>`;
}

function text(x: number, y: number, words: string, more = ''): string {
  return `<text x='${x}' y='${y}' ${more}>${escapeMarkup(words)}</text>`;
}

/** Lines of at most so many characters; a longer word has its own. */
function wrapped(sentence: string, most: number): string[] {
  const lines = [''];
  for (const word of sentence.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + word.length + 1 > most) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
