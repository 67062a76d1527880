/** Files of the export menus: each choice from reports to a file. Loaded when one is chosen. */

import { AmalgamError } from '../../errors';
import { textSha256 } from '../../formats/hashes';
import { escapeMarkup, htmlPage, htmlTable } from '../../formats/html-page';
import { formatBytes, formatCount, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { formatRecipe } from '../../formats/recipe-format';
import { isPredicted, plainReport } from '../../merge/prediction/predicted-report';
import { sameItems } from '../../merge/prediction/same-items';
import type { TensorReport } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import { absenceOf, subjectsOf } from '../charts/metric-choice';
import { isAwaited, type Metric, measure, metrics } from '../charts/metrics';
import { timeShares } from '../charts/time-shares';
import type { ShownLayers } from '../layers/columns';
import { type LayersRun, reportsFor } from '../layers/runs';
import { saveFile, saveText } from '../local/file-download';
import { LETTERS } from '../parts/Swatch';
import { fileName } from '../state/job-state';
import type { Contributor } from '../state/runs';
import type { StudioState } from '../state/studio-state';
import { type Drawn, type Figure, figureOfRun, figureOfRuns, figureSvg } from './figure';

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

/** Pixels of the picture for one of the drawing: 300 an inch. */
const DENSITY = 300 / 96;
/** The chunk of a PNG that gives its density, 11 811 pixels a meter, with length and checksum (PNG 3rd edition, 11.3.4.3). */
const PHYS = [
  0, 0, 0, 9, 0x70, 0x48, 0x59, 0x73, 0, 0, 0x2e, 0x23, 0, 0, 0x2e, 0x23, 1, 0x78, 0xa5, 0x3f, 0x76,
];
/** Where the chunk belongs: behind the signature and the header. */
const AFTER_HEADER = 33;

/**
 * An SVG text as a picture of 300 dpi: PNG, or one in a PDF page of its size.
 * @throws ExportFailed where the browser cannot draw it, e.g. because it is larger than a canvas may be
 */
async function pictureOf(svg: string, kind: 'png' | 'pdf'): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = Math.round(image.naturalWidth * DENSITY);
    canvas.height = Math.round(image.naturalHeight * DENSITY);
    const context = canvas.getContext('2d');
    if (!context) throw new Error('there is no canvas');
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    if (kind === 'pdf') return await pdfOf(context.getImageData(0, 0, canvas.width, canvas.height));
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'));
    if (!blob) throw new Error('the canvas is empty');
    return new Blob([blob.slice(0, AFTER_HEADER), Uint8Array.from(PHYS), blob.slice(AFTER_HEADER)], {
      type: 'image/png',
    });
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

/**
 * One page with one picture of 300 dpi, without loss (ISO 32000-1, 8.9.5). A library would bring fonts and a hundred times
 * the code: letters like τ and ‖ are in none of the fonts that every reader of PDF has.
 */
export async function pdfOf({
  width,
  height,
  data,
}: Pick<ImageData, 'width' | 'height' | 'data'>): Promise<Blob> {
  const rgb = new Uint8Array(width * height * 3);
  for (let i = 0, o = 0; i < data.length; i += 4, o += 3) rgb.set(data.subarray(i, i + 3), o);
  const packed = new Blob([rgb]).stream().pipeThrough(new CompressionStream('deflate'));
  const pixels = await new Response(packed).blob();
  const [w, h] = [(width * 72) / 300, (height * 72) / 300];
  const draw = `q ${w} 0 0 ${h} 0 0 cm /P Do Q`;
  const image = `/Type/XObject/Subtype/Image/Width ${width}/Height ${height}/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/FlateDecode`;
  const objects: (string | Blob)[][] = [
    ['<</Type/Catalog/Pages 2 0 R>>'],
    ['<</Type/Pages/Kids[3 0 R]/Count 1>>'],
    [`<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${w} ${h}]/Contents 4 0 R/Resources<</XObject<</P 5 0 R>>>>>>`],
    [`<</Length ${draw.length}>>stream\n${draw}\nendstream`],
    [`<<${image}/Length ${pixels.size}>>stream\n`, pixels, '\nendstream'],
  ];
  const parts: (string | Blob)[] = ['%PDF-1.4\n'];
  let at = 9;
  const offsets = objects.map((object, i) => {
    const begins = at;
    const whole = [`${i + 1} 0 obj\n`, ...object, '\nendobj\n'];
    parts.push(...whole);
    at += whole.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : part.size), 0);
    return begins;
  });
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`);
  const count = objects.length + 1;
  parts.push(
    `xref\n0 ${count}\n0000000000 65535 f \n${rows.join('')}trailer<</Size ${count}/Root 1 0 R>>\nstartxref\n${at}\n%%EOF\n`,
  );
  return new Blob(parts, { type: 'application/pdf' });
}

/** The shown runs as one of the files. */
export async function exportLayers(
  kind: 'svg' | 'png' | 'pdf' | 'csv' | 'json' | 'html',
  { view: { columns, metric, subject, grid, bands }, runs: shown }: ShownLayers,
  { view: { scale: colors } }: Pick<StudioState, 'view'>,
): Promise<void> {
  const name = fileName(shown.map((run) => run.name).join(' vs '));
  const runs = shown.map((run, i) => ({
    name: shown.length > 1 ? `${LETTERS[i]}: ${run.name}` : run.name,
    contributors: run.contributors,
    reports: reportsOf(run, reportsFor(run, metric)),
    run,
  }));
  if (kind === 'csv') return saveText(tensorCsv(runs), `${name}-tensors.csv`);
  if (kind === 'json') {
    const plain = runs.map(({ name: title, contributors, reports, run }) => ({
      run: title,
      recipe: run.recipe,
      contributors: contributors.map((c) => c.id),
      tensors: reports.map(plainReport),
    }));
    return saveText(JSON.stringify(plain, null, 2), `${name}-tensors.json`);
  }
  const captions = await Promise.all(shown.map(captionOf));
  if (kind === 'html') {
    const first = shown[0]!;
    const figures = metrics
      .filter((m) => absenceOf(m, first.traits) === null)
      .flatMap((m) =>
        subjectsOf(m, first.contributors).map(({ ids, label }) =>
          figureOfRuns(
            { metric: m, subject: ids, grid, bands, title: titleOf(m, label) },
            runs.map(({ name: title, run }) => ({ title, reports: reportsFor(run, m) })),
            colors,
          ),
        ),
      )
      .filter(({ charts }) => charts[0]!.data.mean !== null);
    const described = runs.map(({ name: title, run }) => ({
      title,
      recipe: run.recipe,
      isExact: run.state === 'exact',
    }));
    return saveText(comparisonHtml(described, figures), `${name}.report.html`);
  }
  const drawn = columns.map(({ run, letter, reports }) => ({ title: `${letter}: ${run.name}`, reports }));
  const whose = subjectsOf(metric, shown[0]!.contributors).find(({ ids }) => sameItems(ids, subject));
  const title = titleOf(metric, whose?.label ?? '');
  const figure = figureOfRuns({ metric, subject, grid, bands, title }, drawn, colors);
  const svg = figureSvg({
    ...figure,
    caption: [`${[...figure.caption, ...captions].join(' ')} Colors: ${COLOR_WORDS[colors]}.`],
  });
  if (kind === 'svg') saveText(svg, `${name}-${metric.id}.svg`);
  else saveFile(await pictureOf(svg, kind), `${name}-${metric.id}.${kind}`);
}

function titleOf(metric: Metric, whose: string): string {
  return metric.per === 'tensor' ? metric.label : `${metric.label}, ${whose}`;
}

const COLOR_WORDS = { full: 'the full range', percentile: 'from the 2nd to the 98th percentile of cells' };

/** The recipe of a run and how far its numbers are known, for the caption of a figure. */
async function captionOf({ recipe, state }: LayersRun, i: number): Promise<string> {
  const known =
    state === 'exact' ? 'merged, exact' : state === 'running' ? 'being merged' : 'predicted from samples';
  return `${LETTERS[i]}: recipe ${(await textSha256(formatRecipe(recipe))).slice(0, 16)}, ${known}.`;
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
    .map((metric) => figureOfRun(metric, drawn))
    .filter(({ charts: all }) => all.some(({ data }) => data.mean !== null))
    .map((figure) => `<div class="wide charts">${figureSvg(figure)}</div>`);
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
  figures: readonly Figure[],
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
${figures.map((figure) => `<div class="wide charts">${figureSvg(figure)}</div>`).join('\n')}
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
