import { useMemo, useRef } from 'react';
import type { TensorReport } from '../../reports/job';
import { type ColorScale, colorScale, domain } from '../charts/color-scale';
import { differenceMetric, differenceOf } from '../charts/difference';
import { HeatmapFigure } from '../charts/HeatmapFigure';
import { extremeValues, type Heatmap, heatmap, type LayerGrid, layerGrid } from '../charts/heatmap-data';
import type { Metric } from '../charts/metrics';
import { type ChartSubject, subjectKey, subjectsOf } from '../charts/subjects';
import type { PinnedLayers } from '../state/run-facts';
import { useFacts, useShownTheme } from '../studio-context';
import type { LayersSource } from './layers-source';

interface ChartsProps {
  metric: Metric;
  source: LayersSource;
}

interface Chart {
  subject: ChartSubject;
  data: Heatmap;
}

/** Layer × module charts, one per contributor or pair, on one scale; with a pinned state, both and their difference. */
export function LayersCharts({ metric, source }: ChartsProps) {
  const pinned = useFacts((s) => s.pinned);
  const grid = useMemo(() => layerGrid(source.tensors), [source.tensors]);
  const subjects = useMemo(() => subjectsOf(metric, source.contributors), [metric, source.contributors]);
  const charts = useCharts(subjects, grid, source.reports, metric);
  if (subjects.length === 0) {
    return (
      <div className="empty">
        <span>{metric.label} compares two contributors; this recipe has only one.</span>
      </div>
    );
  }
  return pinned ? (
    <BesidePinned metric={metric} grid={grid} charts={charts} pinned={pinned} />
  ) : (
    <OneSet metric={metric} grid={grid} charts={charts} />
  );
}

interface SetProps {
  metric: Metric;
  grid: LayerGrid;
  charts: readonly Chart[];
}

function OneSet({ metric, grid, charts }: SetProps) {
  const scale = useScale(
    metric,
    charts.map((c) => c.data),
  );
  return <ChartRow metric={metric} grid={grid} charts={charts} scale={scale} />;
}

/** A as it was pinned, B as it is now, on one scale; and B − A around 0. */
function BesidePinned({ metric, grid, charts, pinned }: SetProps & { pinned: PinnedLayers }) {
  const oldGrid = useMemo(() => layerGrid(pinned.tensors), [pinned.tensors]);
  const reports = useMemo(() => new Map(pinned.reports.map((r) => [r.name, r])), [pinned.reports]);
  const subjects = useMemo(() => subjectsOf(metric, pinned.contributors), [metric, pinned.contributors]);
  const before = useCharts(subjects, oldGrid, reports, metric);
  const scale = useScale(
    metric,
    [...before, ...charts].map((c) => c.data),
  );
  const differences = useMemo(() => {
    const known = new Map(before.map((chart) => [subjectKey(chart.subject), chart.data]));
    return charts.flatMap(({ subject, data }) => {
      const old = known.get(subjectKey(subject));
      return old ? [{ subject, data: differenceOf(old, data) }] : [];
    });
  }, [before, charts]);
  const signed = useMemo(() => differenceMetric(metric), [metric]);
  const signedScale = useScale(
    signed,
    differences.map((c) => c.data),
    'fit',
  );
  return (
    <div className="chart-sets">
      <section aria-label="A, pinned">
        <h3 className="set-title">
          A <span className="quiet">{pinned.title}</span>
        </h3>
        <ChartRow metric={metric} grid={oldGrid} charts={before} scale={scale} />
      </section>
      <section aria-label="B, now">
        <h3 className="set-title">
          B <span className="quiet">as it is now</span>
        </h3>
        <ChartRow metric={metric} grid={grid} charts={charts} scale={scale} />
      </section>
      <section aria-label="Difference">
        <h3 className="set-title">
          B − A <span className="quiet">{differences.length === 0 ? 'nothing in common' : metric.label}</span>
        </h3>
        <ChartRow metric={signed} grid={grid} charts={differences} scale={signedScale} />
      </section>
    </div>
  );
}

function ChartRow({ metric, grid, charts, scale }: SetProps & { scale: ColorScale }) {
  return (
    <div className="charts" data-one={charts.length === 1 || undefined}>
      {charts.map(({ subject, data }) => (
        <HeatmapFigure
          key={subjectKey(subject)}
          contributors={subject.contributors}
          metric={metric}
          grid={grid}
          data={data}
          scale={scale}
          annotated={charts.length === 1}
        />
      ))}
    </div>
  );
}

/** The scale that charts share, in the colours of the theme. */
function useScale(metric: Metric, maps: readonly Heatmap[], extent?: 'fit'): ColorScale {
  const theme = useShownTheme();
  const chosen = useFacts((s) => s.view.scale);
  const { min, max } = domain(metric, extremeValues(maps), extent ?? chosen);
  return useMemo(() => colorScale(metric, min, max, theme), [metric, min, max, theme]);
}

/** The values of every chart, each built on the one drawn before it. */
function useCharts(
  subjects: readonly ChartSubject[],
  grid: LayerGrid,
  reports: ReadonlyMap<string, TensorReport>,
  metric: Metric,
): Chart[] {
  const before = useRef(new Map<string, Heatmap>());
  return useMemo(() => {
    const key = (subject: ChartSubject) => `${metric.id} ${subjectKey(subject)}`;
    const charts = subjects.map((subject) => ({
      subject,
      data: heatmap(grid, reports, metric, subject.ids, before.current.get(key(subject))),
    }));
    before.current = new Map(charts.map(({ subject, data }) => [key(subject), data]));
    return charts;
  }, [subjects, grid, reports, metric]);
}
