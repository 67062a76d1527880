/** What the export menus save: each choice from facts to a file. Loaded when one is chosen. */
import { plainReport } from '../../merge/prediction/predicted-report';
import { metricById } from '../charts/metrics';
import { saveFile, saveText } from '../local/save-file';
import type { StudioFacts } from '../state/facts';
import { fileName } from '../state/saved-output';
import { type ChartSet, chartSets, type Drawn } from './chart-sets';
import { heatmapSvg } from './heatmap-svg';
import { type ReportedRun, reportHtml } from './report-html';
import { svgToPng } from './svg-png';
import { tensorCsv } from './tensor-csv';

export type ExportKind = 'svg' | 'png' | 'csv' | 'json' | 'html';

/** What Layers shows now as one of the files; `json` gives the numbers shown, measured or predicted. */
export async function exportLayers(
  kind: Exclude<ExportKind, 'html'>,
  shown: Drawn,
  { view, pinned }: StudioFacts,
): Promise<void> {
  const name = fileName(`${shown.title}-${view.metric}`);
  const reports = shown.tensors.flatMap((t) => shown.reports.get(t.name) ?? []);
  const ids = shown.contributors.map((c) => c.id);
  if (kind === 'csv') return saveText(tensorCsv(reports, ids), `${fileName(shown.title)}-tensors.csv`);
  if (kind === 'json') {
    const plain = reports.map(plainReport);
    return saveText(
      JSON.stringify({ title: shown.title, contributors: ids, tensors: plain }, null, 2),
      `${fileName(shown.title)}-tensors.json`,
    );
  }
  const before = pinned && { ...pinned, reports: new Map(pinned.reports.map((r) => [r.name, r])) };
  const svg = heatmapSvg(setsOf(view.metric, view.scale, shown, before));
  if (kind === 'svg') saveText(svg, `${name}.svg`);
  else saveFile(await svgToPng(svg), `${name}.png`);
}

/** A run as one of the files. */
export function exportRun(kind: 'csv' | 'json' | 'html', run: ReportedRun, startedAt: number): void {
  const name = fileName(`${run.title}-${run.report.recipe.mergeMethod}`);
  if (kind === 'json') saveText(JSON.stringify(run.report, null, 2), `${name}.report.json`);
  else if (kind === 'csv') {
    const ids = run.contributors.map((c) => c.id);
    saveText(tensorCsv(run.report.tensors, ids), `${name}-tensors.csv`);
  } else saveText(reportHtml(run, new Date(startedAt).toLocaleString()), `${name}.report.html`);
}

function setsOf(
  metric: StudioFacts['view']['metric'],
  extent: StudioFacts['view']['scale'],
  shown: Drawn,
  before: Drawn | null,
): ChartSet[] {
  return chartSets(metricById(metric), shown, before, extent);
}
