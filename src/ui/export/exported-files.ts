/** Files of the export menus: each choice from reports to a file. Loaded when one is chosen. */

import { AmalgamError } from '../../errors';
import { textSha256 } from '../../formats/hashes';
import { densePng, pdfOf } from '../../formats/print-picture';
import { formatRecipe } from '../../formats/recipe-format';
import { isPredicted } from '../../merge/prediction/predicted-report';
import { sameItems } from '../../merge/prediction/same-items';
import { subjectsOf } from '../charts/metric-choice';
import { isAwaited, type Metric, measure, metrics } from '../charts/metrics';
import type { ShownLayers } from '../layers/columns';
import { type LayersRun, reportsFor } from '../layers/runs';
import { saveFile, saveText } from '../local/local-files';
import { LETTERS } from '../parts/Section';
import { fileName } from '../state/job-state';
import { figureOf, figureSvg } from './figure';

// Numbers as CSV in long form (RFC 4180): a row for every run, tensor, metric and subject. Pure.

const LINE = '\r\n';
const HEAD = ['run', 'tensor', 'layer', 'module', 'elements', 'metric', 'subject', 'value', 'error', 'kind'];

/** Every number of every tensor in full precision; `kind` is exact or predicted. */
export function tensorCsv(runs: readonly LayersRun[]): string {
  const rows = runs.flatMap((run, i) => {
    const known = metrics.map((metric) => ({ metric, reports: reportsFor(run, metric) }));
    return run.tensors.flatMap(({ name }) =>
      known.flatMap(({ metric, reports }) =>
        subjectsOf(metric, run.contributors).flatMap(({ ids }) => {
          const report = reports.get(name);
          const found = report && !isAwaited(metric, report) ? measure(metric, report, ids) : null;
          if (!report || !found) return [];
          const place = [titleOfRun(run, i, runs), name, report.layer ?? '', report.module, report.elements];
          const kind = isPredicted(report) ? 'predicted' : 'exact';
          return [[...place, metric.id, ids.join(' × '), found.value, found.error, kind]];
        }),
      ),
    );
  });
  return [HEAD, ...rows].map((row) => row.map(field).join(',') + LINE).join('');
}

/** Quoted where it has to be. A text that a spreadsheet would take for a formula is led by an apostrophe. */
function field(value: string | number): string {
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Pixels of the picture for one of the drawing: 300 an inch. */
const DENSITY = 300 / 96;

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
    return densePng(blob);
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

/** The canvas as a picture, or its runs as one of the other files. */
export async function exportLayers(
  kind: 'svg' | 'png' | 'pdf' | 'csv',
  { view: { columns, metric, subject, grid, bands }, runs }: ShownLayers,
): Promise<void> {
  const name = fileName(runs.map((run) => run.name).join(' vs '));
  if (kind === 'csv') return saveText(tensorCsv(runs), `${name}-tensors.csv`);
  const charts = columns.map((of) => ({ ...of, title: `${of.letter}: ${of.run.name}` }));
  const whose = subjectsOf(metric, runs[0]!.contributors).find(({ ids }) => sameItems(ids, subject));
  const title = titleOf(metric, whose?.label ?? '');
  const figure = figureOf({ metric, grid, bands, title }, charts);
  const captions = await Promise.all(runs.map(captionOf));
  const svg = figureSvg({
    ...figure,
    caption: [
      `${[...figure.caption, ...captions].join(' ')} Colors: from the 2nd to the 98th percentile of cells.`,
    ],
  });
  if (kind === 'svg') saveText(svg, `${name}-${metric.id}.svg`);
  else saveFile(await pictureOf(svg, kind), `${name}-${metric.id}.${kind}`);
}

function titleOf(metric: Metric, whose: string): string {
  return metric.per === 'tensor' ? metric.label : `${metric.label}, ${whose}`;
}

/** Its name, with its letter where it is one of several. */
function titleOfRun({ name }: LayersRun, i: number, runs: readonly LayersRun[]): string {
  return runs.length > 1 ? `${LETTERS[i]}: ${name}` : name;
}

/** How far the numbers of a run are known. */
const KNOWN = {
  exact: 'merged, exact',
  running: 'being merged',
  predicted: 'predicted from samples',
  planned: 'planned',
};

/** The recipe of a run and how far its numbers are known, for the caption of a figure. */
async function captionOf({ recipe, state }: LayersRun, i: number): Promise<string> {
  const hash = await textSha256(formatRecipe(recipe));
  return `${LETTERS[i]}: recipe ${hash.slice(0, 16)}, ${KNOWN[state]}.`;
}
