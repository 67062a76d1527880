/** Files of the export menus: each choice from reports to a file. Loaded when one is chosen. */

import { AmalgamError } from '../../errors';
import { escapeMarkup, htmlPage, htmlTable } from '../../formats/html-page';
import { formatBytes, formatCount, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { formatRecipe } from '../../formats/recipe-format';
import { isPredicted, plainReport } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import { type Cell, cellText, rowLabel } from '../charts/heatmap-data';
import { absenceOf, subjectsOf } from '../charts/metric-choice';
import { isAwaited, measure, metrics } from '../charts/metrics';
import { timeShares } from '../charts/time-shares';
import { LETTERS, type ShownLayers } from '../layers/columns';
import { countedOverlap } from '../layers/run-overlap';
import { type LayersRun, reportsFor } from '../layers/runs';
import { saveFile, saveText } from '../local/file-download';
import { fileName } from '../state/job-state';
import type { Contributor } from '../state/runs';
import type { OverlapSlice } from '../state/studio-state';
import { type ChartSet, chartSet, comparedSets, type Drawn } from './chart-sets';

// Sets of heatmaps as one SVG text: for files and reports, so in the colors of paper and without scripts. Pure.

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

/** A set below the other, the charts of each side by side. Every cell has its value in a `<title>`. */
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

// Numbers as CSV in long form (RFC 4180): a row for every run, tensor, metric and subject. Pure.

const LINE = '\r\n';
const HEAD = ['run', 'tensor', 'layer', 'module', 'elements', 'metric', 'subject', 'value', 'error', 'kind'];

interface CsvRun {
  name: string;
  contributors: readonly Contributor[];
  reports: Iterable<TensorReport>;
}

/** Every number of every tensor in full precision; `kind` is exact or predicted. */
export function tensorCsv(runs: readonly CsvRun[]): string {
  const rows = runs.flatMap(({ name, contributors, reports }) =>
    [...reports].flatMap((report) =>
      metrics.flatMap((metric) =>
        subjectsOf(metric, contributors).flatMap(({ ids }) => {
          const found = isAwaited(metric, report) ? null : measure(metric, report, ids);
          if (!found) return [];
          const place = [name, report.name, report.layer ?? '', report.module, report.elements];
          const kind = isPredicted(report) ? 'predicted' : 'exact';
          return [[...place, metric.id, ids.join(' × '), found.value, found.error, kind]];
        }),
      ),
    ),
  );
  return [HEAD, ...rows].map((row) => row.map(field).join(',') + LINE).join('');
}

/** Quoted where it has to be. A text that a spreadsheet would take for a formula is led by an apostrophe. */
function field(value: string | number): string {
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Pixels for one unit of the drawing: sharp on dense displays and in print. */
const DENSITY = 2;

/**
 * An SVG text as a PNG picture.
 * @throws ExportFailed where the browser cannot draw it, e.g. because it is larger than a canvas may be
 */
async function svgToPng(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.naturalWidth * DENSITY;
    canvas.height = image.naturalHeight * DENSITY;
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'));
    if (!blob) throw new Error('the canvas is empty');
    return blob;
  } catch (cause) {
    throw new AmalgamError(
      'ExportFailed',
      'The charts could not be drawn as a picture.',
      'Save them as SVG instead, which has no size limit.',
      { cause },
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** The shown runs as one of the files; the mask overlap of two is among their numbers, once it was counted. */
export async function exportLayers(
  kind: 'svg' | 'png' | 'csv' | 'json' | 'html',
  { view: { columns, metric, subject, grid }, runs: shown }: ShownLayers,
  overlap: OverlapSlice,
): Promise<void> {
  const name = fileName(shown.map((run) => run.name).join(' vs '));
  const runs = shown.map((run, i) => ({
    name: shown.length > 1 ? `${LETTERS[i]}: ${run.name}` : run.name,
    contributors: run.contributors,
    reports: reportsOf(run, reportsFor(run, metric)),
    run,
  }));
  const both = countedOverlap(shown, overlap);
  const pair = both && {
    name: both.pair.name,
    contributors: both.pair.contributors.filter(({ id }) => id === both.model),
    reports: reportsOf(both.pair, both.pair.reports),
  };
  if (kind === 'csv') return saveText(tensorCsv(pair ? [...runs, pair] : runs), `${name}-tensors.csv`);
  if (kind === 'json') {
    const plain = runs.map(({ name: title, contributors, reports, run }) => ({
      run: title,
      recipe: run.recipe,
      contributors: contributors.map((c) => c.id),
      tensors: reports.map(plainReport),
    }));
    const counted = both && { run: both.pair.name, contributors: [both.model], maskOverlap: both.tensors };
    return saveText(JSON.stringify(counted ? [...plain, counted] : plain, null, 2), `${name}-tensors.json`);
  }
  if (kind === 'html') {
    const first = shown[0]!;
    const drawn = metrics
      .filter((m) => absenceOf(m, first.traits) === null)
      .flatMap((m) =>
        subjectsOf(m, first.contributors).map(({ ids, label }) => ({
          label,
          sets: comparedSets(
            m,
            ids,
            grid,
            m.id === 'runOverlap' && both
              ? [{ title: both.pair.name, reports: both.pair.reports }]
              : runs.map(({ name: title, run }) => ({ title, reports: reportsFor(run, m) })),
          ),
        })),
      )
      .filter(({ sets }) => sets[0]!.charts.some((c) => c.data.mean !== null));
    return saveText(
      comparisonHtml(
        runs.map(({ name: title, run }) => ({ title, recipe: run.recipe, isExact: run.state === 'exact' })),
        drawn,
      ),
      `${name}.report.html`,
    );
  }
  const svg = heatmapSvg(
    comparedSets(
      metric,
      subject,
      grid,
      columns.map(({ run, letter, reports }) => ({ title: `${letter}: ${run.name}`, reports })),
    ),
  );
  if (kind === 'svg') saveText(svg, `${name}-${metric.id}.svg`);
  else saveFile(await svgToPng(svg), `${name}-${metric.id}.png`);
}

/** Reports in the order of the run's tensors. */
function reportsOf(run: LayersRun, reports: ReadonlyMap<string, TensorReport>): TensorReport[] {
  return run.tensors.flatMap(({ name }) => reports.get(name) ?? []);
}

/** A run as one of the files. */
export function exportRun(kind: 'csv' | 'json' | 'html', run: ReportedRun, startedAt: number): void {
  const name = fileName(`${run.title}-${run.report.recipe.mergeMethod}`);
  if (kind === 'json') saveText(JSON.stringify(run.report, null, 2), `${name}.report.json`);
  else if (kind === 'csv') {
    const { title, contributors, report } = run;
    saveText(tensorCsv([{ name: title, contributors, reports: report.tensors }]), `${name}-tensors.csv`);
  } else saveText(reportHtml(run, new Date(startedAt).toLocaleString()), `${name}.report.html`);
}

// A run as one HTML file that needs nothing else: no script, no request. Everything from models is escaped. Pure.

interface ReportedRun extends Omit<Drawn, 'reports'> {
  methodTitle: string;
  report: MergeReport;
}

/** @param at when the run began, in words */
export function reportHtml(run: ReportedRun, at: string): string {
  const { report, title, methodTitle } = run;
  const bytes = report.shards.reduce((sum, s) => sum + s.bytes, 0);
  const drawn: Drawn = { ...run, reports: new Map(report.tensors.map((t) => [t.name, t])) };
  const charts = metrics
    .map((metric) => chartSet(metric, drawn))
    .filter((set) => set.charts.some((chart) => chart.data.mean !== null))
    .map((set) => `<div class="wide charts">${heatmapSvg([set])}</div>`);
  const text = escapeMarkup;
  const body = `<h1>${text(title)}</h1>
<p>${text(methodTitle)} · ${text(at)} · merged in ${text(formatSeconds(report.seconds))} on ${report.engine === 'webgpu' ? 'WebGPU' : 'the CPU'} (${text(report.adapter)}) · ${text(formatBytes(bytes))} written · Amalgam ${text(report.version)}</p>
<h2>Recipe</h2>
<pre>${text(formatRecipe(report.recipe))}</pre>
<h2>Hashes</h2>
${hashes(report)}
<h2>Where the time went</h2>
${htmlTable(
  ['stage', 'seconds', 'share'],
  timeShares(report).map((s) => [s.stage, s.seconds.toFixed(3), formatPercent(s.share)]),
)}
<p>Stages overlap, so they add up to more than the whole. At most ${text(formatBytes(report.peakBytes))} of memory for tiles.</p>
<h2>Layers</h2>
${charts.join('\n')}
<h2>Tensors</h2>
${tensors(run)}
`;
  return htmlPage(`${title} · Amalgam`, body);
}

/** Several runs side by side as one HTML file that needs nothing else. */
function comparisonHtml(
  runs: readonly { title: string; recipe: MergeReport['recipe']; isExact: boolean }[],
  drawn: readonly { label: string; sets: readonly ChartSet[] }[],
): string {
  const text = escapeMarkup;
  const title = runs.map((run) => run.title).join(' | ');
  const body = `<h1>${text(title)}</h1>
${runs
  .map(
    (run) =>
      `<h2>${text(run.title)}</h2><p>${run.isExact ? 'Merged: its numbers are exact.' : 'Predicted: counts come from samples.'}</p><pre>${text(formatRecipe(run.recipe))}</pre>`,
  )
  .join('\n')}
<h2>Layers</h2>
${drawn.map(({ label, sets }) => `<p>${text(label)}</p><div class="wide charts">${heatmapSvg(sets)}</div>`).join('\n')}
`;
  return htmlPage(`${title} · Amalgam`, body);
}

function hashes({ recipeSha256, inputs, shards }: MergeReport): string {
  const rows = [
    ['recipe', '', recipeSha256],
    ...inputs.map(({ id, file, hash }) => ['input', `${id} / ${file}`, hash]),
    ...shards.map(({ file, bytes, hash }) => ['output', `${file}, ${formatBytes(bytes)}`, hash]),
  ].map(
    ([what = '', name = '', hash = '']) =>
      `<tr><td>${what}</td><td class="text">${escapeMarkup(name)}</td><td><code>${escapeMarkup(hash)}</code></td></tr>`,
  );
  return `<div class="wide"><table><tr><th>what</th><th class="text">name</th><th>hash</th></tr>${rows.join('')}</table></div>`;
}

function tensors({ report, contributors }: ReportedRun): string {
  const head = [
    'tensor',
    'elements',
    ...contributors.map((c) => `trimmed, ${c.label}`),
    'sign conflict',
    'change',
  ];
  const rows = report.tensors.map((tensor) => [
    tensor.name,
    formatCount(tensor.elements),
    ...contributors.map(({ id }) => {
      const own = tensor.contributors.find((c) => c.id === id && c.norm > 0);
      return own && !tensor.copied ? formatPercent(1 - own.kept / tensor.elements) : '–';
    }),
    tensor.copied ? 'copied' : formatPercent(tensor.signConflict),
    tensor.copied ? '–' : formatReal(tensor.outputChange),
  ]);
  return htmlTable(head, rows);
}
