/** The charts of Layers as data, for files: one run with all its subjects, or several runs and their difference. Pure. */

import type { TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { type ColorScale, colorScale, domain, percentileDomain } from '../charts/color-scale';
import { differenceMetric, differenceOf } from '../charts/difference';
import { extremeValues, type Heatmap, heatmap, type LayerGrid, layerGrid } from '../charts/heatmap-data';
import type { Metric, Subject } from '../charts/metrics';
import { subjectsOf } from '../layers/subject';
import type { Contributor } from '../state/runs';

export interface ChartSet {
  title: string;
  metric: Metric;
  grid: LayerGrid;
  scale: ColorScale;
  charts: { key: string; title: string; data: Heatmap }[];
}

/** Everything a set of charts is drawn from. */
export interface Drawn {
  title: string;
  contributors: readonly Contributor[];
  tensors: readonly PlanTensor[];
  reports: ReadonlyMap<string, TensorReport>;
}

/** One run: a chart for each of the metric's subjects. Colors are those of the light theme. */
export function chartSet(metric: Metric, { title, contributors, tensors, reports }: Drawn): ChartSet {
  const grid = layerGrid(tensors);
  const charts = subjectsOf(metric, contributors).map(({ ids, key, label }) => ({
    key,
    title: label,
    data: heatmap(grid, reports, metric, ids),
  }));
  const { min, max } = domain(metric, extremeValues(charts.map((c) => c.data)), 'full');
  return { title, metric, grid, charts, scale: colorScale(metric, min, max, 'light') };
}

/** Several runs on one scale; of two also B − A around 0. */
export function comparedSets(
  metric: Metric,
  subject: Subject,
  grid: LayerGrid,
  runs: readonly { title: string; reports: ReadonlyMap<string, TensorReport> }[],
): ChartSet[] {
  const charts = runs.map(({ title, reports }, i) => ({
    key: String(i),
    title,
    data: heatmap(grid, reports, metric, subject),
  }));
  const values = (maps: readonly Heatmap[]) =>
    maps.flatMap(({ rows }) => rows.flatMap((row) => row.cells.flatMap((c) => c?.measured?.value ?? [])));
  const set = (of: Metric, title: string, shown: ChartSet['charts']): ChartSet => {
    const { min, max } = percentileDomain(of, values(shown.map((c) => c.data)), of.isShare ? 0.02 : 1e-12);
    return { title, metric: of, grid, charts: shown, scale: colorScale(of, min, max, 'light') };
  };
  const both = set(metric, charts.map((c) => c.title).join(' | '), charts);
  const [a, b] = charts;
  if (!a || !b || charts.length !== 2) return [both];
  const difference = { key: 'difference', title: 'B − A', data: differenceOf(a.data, b.data) };
  return [both, set(differenceMetric(metric), 'B − A', [difference])];
}
