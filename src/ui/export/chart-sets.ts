/** The charts of Layers as data, for files: one run with all its subjects, or several runs and their difference. Pure. */

import type { TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { type ColorScale, scaleOver } from '../charts/color-scale';
import { differenceOf, type Heatmap, heatmap, type LayerGrid, layerGrid } from '../charts/heatmap-data';
import { differenceMetric, subjectsOf } from '../charts/metric-choice';
import type { Metric, Subject } from '../charts/metrics';
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
  const maps = charts.map((c) => c.data);
  return { title, metric, grid, charts, scale: scaleOver(metric, maps, 'full', 'light') };
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
  const set = (of: Metric, title: string, shown: ChartSet['charts']): ChartSet => {
    const maps = shown.map((c) => c.data);
    return { title, metric: of, grid, charts: shown, scale: scaleOver(of, maps, 'percentile', 'light') };
  };
  const both = set(metric, charts.map((c) => c.title).join(' | '), charts);
  const [a, b] = charts;
  if (!a || !b || charts.length !== 2) return [both];
  const difference = { key: 'difference', title: 'B − A', data: differenceOf(a.data, b.data) };
  return [both, set(differenceMetric(metric), 'B − A', [difference])];
}
