/** The charts of Layers as data, for files: what is shown, or the pinned state beside it and their difference. Pure. */

import type { TensorReport } from '../../reports/job';
import type { PlanTensorFacts } from '../../reports/plan';
import { type ColorScale, colorScale, domain } from '../charts/color-scale';
import { differenceMetric, differenceOf } from '../charts/difference';
import { extremeValues, type Heatmap, heatmap, type LayerGrid, layerGrid } from '../charts/heatmap-data';
import type { Metric } from '../charts/metrics';
import { subjectKey, subjectsOf } from '../charts/subjects';
import type { Contributor } from '../state/run-facts';

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
  tensors: readonly PlanTensorFacts[];
  reports: ReadonlyMap<string, TensorReport>;
}

/** One set; with `pinned`, three: A, B on one scale, and B − A around 0. Colours are those of the light theme. */
export function chartSets(
  metric: Metric,
  shown: Drawn,
  pinned: Drawn | null,
  extent: 'full' | 'fit',
): ChartSet[] {
  const now = charts(metric, shown);
  const before = pinned ? charts(metric, pinned) : null;
  const shared = [...(before?.charts ?? []), ...now.charts].map((chart) => chart.data);
  const scale = scaleOf(metric, shared, extent);
  if (!pinned || !before) return [{ ...now, title: shown.title, metric, scale }];
  const old = new Map(before.charts.map((chart) => [chart.key, chart.data]));
  const differences = now.charts.flatMap((chart) => {
    const a = old.get(chart.key);
    return a ? [{ ...chart, data: differenceOf(a, chart.data) }] : [];
  });
  const signed = differenceMetric(metric);
  return [
    { ...before, title: `A: ${pinned.title}`, metric, scale },
    { ...now, title: `B: ${shown.title}`, metric, scale },
    {
      title: 'B − A',
      metric: signed,
      grid: now.grid,
      charts: differences,
      scale: scaleOf(
        signed,
        differences.map((chart) => chart.data),
        'fit',
      ),
    },
  ];
}

function charts(
  metric: Metric,
  { contributors, tensors, reports }: Drawn,
): Pick<ChartSet, 'grid' | 'charts'> {
  const grid = layerGrid(tensors);
  return {
    grid,
    charts: subjectsOf(metric, contributors).map((subject) => ({
      key: subjectKey(subject),
      title: subject.contributors.map((c) => c.label).join(' × ') || 'Merged model',
      data: heatmap(grid, reports, metric, subject.ids),
    })),
  };
}

function scaleOf(metric: Metric, maps: readonly Heatmap[], extent: 'full' | 'fit'): ColorScale {
  const { min, max } = domain(metric, extremeValues(maps), extent);
  return colorScale(metric, min, max, 'light');
}
