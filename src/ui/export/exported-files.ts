/** What the export menus save: each choice from reports to a file. Loaded when one is chosen. */
import { plainReport } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import { absenceOf } from '../charts/default-view';
import { metrics } from '../charts/metrics';
import { LETTERS, type ShownLayers } from '../layers/columns';
import { countedOverlap } from '../layers/run-overlap';
import { type LayersRun, reportsFor } from '../layers/runs';
import { subjectsOf } from '../layers/subject';
import { saveFile, saveText } from '../local/file-download';
import { fileName } from '../state/saved-output';
import type { OverlapSlice } from '../state/studio-state';
import { comparedSets } from './chart-sets';
import { heatmapSvg } from './heatmap-svg';
import { comparisonHtml, type ReportedRun, reportHtml } from './report-html';
import { svgToPng } from './svg-png';
import { tensorCsv } from './tensor-csv';

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
