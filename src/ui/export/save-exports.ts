/** What the export menus save: each choice from facts to a file. Loaded when one is chosen. */
import { plainReport } from '../../merge/prediction/predicted-report';
import { absenceOf } from '../charts/default-view';
import { metrics } from '../charts/metrics';
import type { LayersView } from '../layers/columns';
import { reportsFor } from '../layers/runs';
import { subjectsOf } from '../layers/subject';
import { saveFile, saveText } from '../local/save-file';
import { fileName } from '../state/saved-output';
import { comparedSets } from './chart-sets';
import { heatmapSvg } from './heatmap-svg';
import { comparisonHtml, type ReportedRun, reportHtml } from './report-html';
import { svgToPng } from './svg-png';
import { tensorCsv } from './tensor-csv';

/** The shown runs as one of the files. */
export async function exportLayers(
  kind: 'svg' | 'png' | 'csv' | 'json' | 'html',
  { columns, metric, subject, grid }: LayersView,
): Promise<void> {
  const runs = columns.map(({ run, letter, reports }) => ({
    name: columns.length > 1 ? `${letter}: ${run.name}` : run.name,
    contributors: run.contributors,
    reports: run.tensors.flatMap((t) => reports.get(t.name) ?? []),
    run,
  }));
  const name = fileName(runs.map(({ run }) => run.name).join(' vs '));
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
  if (kind === 'html') {
    const drawn = metrics
      .filter((m) => absenceOf(m, columns[0]!.run.traits) === null)
      .flatMap((m) =>
        subjectsOf(m, columns[0]!.run.contributors).map(({ ids, label }) => ({
          label,
          sets: comparedSets(
            m,
            ids,
            grid,
            runs.map(({ name: title, run }) => ({ title, reports: reportsFor(run, m) })),
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

/** A run as one of the files. */
export function exportRun(kind: 'csv' | 'json' | 'html', run: ReportedRun, startedAt: number): void {
  const name = fileName(`${run.title}-${run.report.recipe.mergeMethod}`);
  if (kind === 'json') saveText(JSON.stringify(run.report, null, 2), `${name}.report.json`);
  else if (kind === 'csv') {
    const { title, contributors, report } = run;
    saveText(tensorCsv([{ name: title, contributors, reports: report.tensors }]), `${name}-tensors.csv`);
  } else saveText(reportHtml(run, new Date(startedAt).toLocaleString()), `${name}.report.html`);
}
