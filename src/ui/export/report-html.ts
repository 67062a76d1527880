/** A run as one HTML file that needs nothing else: no script, no request. Everything from models is escaped. Pure. */

import { escapeMarkup, htmlPage, htmlTable } from '../../formats/html-page';
import { formatBytes, formatCount, formatPercent, formatReal, formatSeconds } from '../../formats/quantity';
import { formatRecipe } from '../../formats/recipe-format';
import type { MergeReport } from '../../reports/merge';
import { metrics } from '../charts/metrics';
import { timeShares } from '../charts/time-shares';
import { type ChartSet, chartSet, type Drawn } from './chart-sets';
import { heatmapSvg } from './heatmap-svg';

export interface ReportedRun extends Omit<Drawn, 'reports'> {
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
export function comparisonHtml(
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
