/** A run as one HTML file that needs nothing else: no script, no request. Everything from models is escaped. Pure. */

import { formatBytes, formatCount, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { formatRecipe } from '../../formats/recipe-format';
import type { MergeReport } from '../../reports/merge';
import { metrics } from '../charts/metrics';
import { timeShares } from '../charts/time-shares';
import { type ChartSet, chartSet, type Drawn } from './chart-sets';
import { escapeMarkup } from './escape';
import { heatmapSvg } from './heatmap-svg';

export interface ReportedRun extends Omit<Drawn, 'reports'> {
  methodTitle: string;
  report: MergeReport;
}

const STYLE = `
body { max-width: 1100px; margin: 24px auto; padding: 0 16px; font: 14px/1.5 system-ui, sans-serif; color: #1d1b17; background: #fff; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 16px; margin: 32px 0 8px; }
p { margin: 4px 0; color: #57524a; }
pre { padding: 12px; background: #f6f5f2; border-radius: 6px; overflow: auto; }
table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; border-bottom: 1px solid #e0dcd3; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.text, th.text { text-align: left; }
code { font: 12px ui-monospace, monospace; }
.wide { overflow: auto; }
svg { max-width: none; display: block; }
`;

/** @param at when the run began, in words */
export function reportHtml(run: ReportedRun, at: string): string {
  const { report, title, methodTitle } = run;
  const bytes = report.shards.reduce((sum, s) => sum + s.bytes, 0);
  const drawn: Drawn = { ...run, reports: new Map(report.tensors.map((t) => [t.name, t])) };
  const charts = metrics
    .map((metric) => chartSet(metric, drawn))
    .filter((set) => set.charts.some((chart) => chart.data.mean !== null))
    .map((set) => `<div class="wide">${heatmapSvg([set])}</div>`);
  const text = escapeMarkup;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${text(title)} · Amalgam</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${text(title)}</h1>
<p>${text(methodTitle)} · ${text(at)} · merged in ${text(formatSeconds(report.seconds))} on ${report.engine === 'webgpu' ? 'WebGPU' : 'the CPU'} (${text(report.adapter)}) · ${text(formatBytes(bytes))} written · Amalgam ${text(report.version)}</p>
<h2>Recipe</h2>
<pre>${text(formatRecipe(report.recipe))}</pre>
<h2>Hashes</h2>
${hashes(report)}
<h2>Where the time went</h2>
${table(
  ['stage', 'seconds', 'share'],
  timeShares(report).map((s) => [s.stage, s.seconds.toFixed(3), formatPercent(s.share)]),
)}
<p>Stages overlap, so they add up to more than the whole. At most ${text(formatBytes(report.peakBytes))} of memory for tiles.</p>
<h2>Layers</h2>
${charts.join('\n')}
<h2>Tensors</h2>
<div class="wide">${tensors(run)}</div>
</body>
</html>
`;
}

/** Several runs side by side as one HTML file that needs nothing else. */
export function comparisonHtml(
  runs: readonly { title: string; recipe: MergeReport['recipe']; isExact: boolean }[],
  drawn: readonly { label: string; sets: readonly ChartSet[] }[],
): string {
  const text = escapeMarkup;
  const title = runs.map((run) => run.title).join(' | ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${text(title)} · Amalgam</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${text(title)}</h1>
${runs
  .map(
    (run) =>
      `<h2>${text(run.title)}</h2><p>${run.isExact ? 'Merged: its numbers are exact.' : 'Predicted: counts come from samples.'}</p><pre>${text(formatRecipe(run.recipe))}</pre>`,
  )
  .join('\n')}
<h2>Layers</h2>
${drawn.map(({ label, sets }) => `<p>${text(label)}</p><div class="wide">${heatmapSvg(sets)}</div>`).join('\n')}
</body>
</html>
`;
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
  return table(head, rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeMarkup(cell)}</${tag}>`).join('')}</tr>`;
  return `<table>${line(head, 'th')}${rows.map((row) => line(row, 'td')).join('\n')}</table>`;
}
