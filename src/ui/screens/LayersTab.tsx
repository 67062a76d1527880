import { useDeferredValue, useMemo, useRef } from 'react';
import { colorScale, domain } from '../charts/color-scale';
import { HeatmapFigure } from '../charts/HeatmapFigure';
import { type Heatmap, heatmap, type LayerGrid, layerGrid, measuredValues } from '../charts/heatmap-data';
import { type Metric, type MetricId, metricById, metrics, type Subject } from '../charts/metrics';
import { formatBytes, formatCounted } from '../format/quantity';
import { Message } from '../parts/Message';
import { Segmented } from '../parts/Segmented';
import type { Contributor } from '../state/facts';
import { measureProfile } from '../state/profile';
import { setView, showTab } from '../state/studio';
import { useFacts, useShownTheme, useStudio } from '../studio-context';
import { LayersTable } from './LayersTable';
import { type LayersSource, useLayersSource } from './layers-source';

/** Layer × module charts of the last or running merge, one per contributor or pair, on one scale. */
export function LayersTab() {
  const source = useLayersSource();
  // while a slider moves, the charts go first
  const later = useDeferredValue(source);
  const metric = metricById(useFacts((s) => s.view.metric));
  const opening = useFacts((s) => s.opening.length > 0 || s.engine.status === 'starting');
  if (source.tensors.length === 0) {
    return (
      <div className="screen">
        <div className="empty" role="status">
          <strong>{opening ? 'Opening the models…' : 'Nothing to draw yet'}</strong>
          <span>
            The chart takes its rows and columns from the plan.
            {opening ? '' : ' Complete the recipe first.'}
          </span>
        </div>
      </div>
    );
  }
  return (
    <div className="screen fill">
      <FirstError />
      <Toolbar metric={metric} source={source} />
      <Charts metric={metric} source={source} />
      <LayersTable source={later} />
    </div>
  );
}

/** What keeps the recipe from being merged, where the chart would be looked at in vain. */
function FirstError() {
  const studio = useStudio();
  const problems = useFacts((s) => s.plan.facts?.problems);
  const error = problems?.find((p) => p.severity === 'error');
  if (!error) return null;
  return (
    <Message tone="error" title={error.message} hint={error.remedy}>
      <button type="button" className="link" onClick={() => showTab(studio, 'plan')}>
        See the plan
      </button>
    </Message>
  );
}

function Toolbar({ metric, source }: { metric: Metric; source: LayersSource }) {
  const studio = useStudio();
  const scale = useFacts((s) => s.view.scale);
  return (
    <div className="layers-bar">
      <div className="scroll-x">
        <Segmented<MetricId>
          label="Metric"
          value={metric.id}
          options={metrics.map((m) => ({ value: m.id, label: m.label }))}
          onChange={(id) => setView(studio, { metric: id })}
        />
      </div>
      <Segmented
        label="Colour scale"
        value={scale}
        options={[
          { value: 'full', label: 'Full scale' },
          { value: 'fit', label: 'Fit' },
        ]}
        onChange={(next) => setView(studio, { scale: next })}
      />
      <p className="small quiet layers-meaning">
        {metric.meaning} <StatusText source={source} />
      </p>
    </div>
  );
}

function StatusText({ source }: { source: LayersSource }) {
  const { measured, expected, state } = source;
  if (state === 'planned') return <Unmeasured />;
  if (state === 'foretold') return <Foretold measured={measured} expected={expected} />;
  if (state === 'outdated') return <em>From the last merge; the recipe has changed since.</em>;
  if (measured < expected) {
    return (
      <em>
        {measured} of {formatCounted(expected, 'tensor')} measured.
      </em>
    );
  }
  return null;
}

/** Before anything is known: why, and what there is to do. */
function Unmeasured() {
  const studio = useStudio();
  const profile = useFacts((s) => s.profile);
  const plan = useFacts((s) => s.plan.facts);
  if (profile.status === 'measuring') return <em>Measuring the changes…</em>;
  if (profile.status === 'failed') return <em>{profile.error?.message}</em>;
  if (profile.status !== 'offered' || !plan) {
    return <em>Not measured yet: press Merge and it fills in, tensor by tensor.</em>;
  }
  const cost =
    plan.bytesToDownload > 0
      ? `downloads ${formatBytes(plan.bytesToDownload)}`
      : `reads ${formatBytes(plan.bytesToRead)}`;
  return (
    <>
      <button type="button" className="link" onClick={() => void measureProfile(studio)}>
        Measure the changes now
      </button>{' '}
      ({cost}), or press Merge and it fills in, tensor by tensor.
    </>
  );
}

function Foretold({ measured, expected }: { measured: number; expected: number }) {
  if (measured < expected) {
    return (
      <em>
        {measured} of {formatCounted(expected, 'tensor')} measured.
      </em>
    );
  }
  return (
    <em>Foretold from the models’ changes: move a slider and it redraws. A merge gives the exact figures.</em>
  );
}

function Charts({ metric, source }: { metric: Metric; source: LayersSource }) {
  const theme = useShownTheme();
  const extent = useFacts((s) => s.view.scale);
  const grid = useMemo(() => layerGrid(source.tensors), [source.tensors]);
  const subjects = useMemo(() => subjectsOf(metric, source.contributors), [metric, source.contributors]);
  const charts = useCharts(subjects, grid, source.reports, metric);
  const { min, max } = domain(metric, measuredValues(charts.map((c) => c.data)), extent);
  const scale = useMemo(() => colorScale(metric, min, max, theme), [metric, min, max, theme]);
  if (subjects.length === 0) {
    return (
      <div className="empty">
        <span>{metric.label} compares two contributors; this recipe has only one.</span>
      </div>
    );
  }
  return (
    <div className="charts" data-one={charts.length === 1 || undefined}>
      {charts.map(({ subject, data }) => (
        <HeatmapFigure
          key={subject.ids.join(' ')}
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

interface ChartSubject {
  ids: Subject;
  contributors: readonly Contributor[];
}

/** The values of every chart, each built on the one drawn before it. */
function useCharts(
  subjects: readonly ChartSubject[],
  grid: LayerGrid,
  reports: LayersSource['reports'],
  metric: Metric,
): { subject: ChartSubject; data: Heatmap }[] {
  const before = useRef(new Map<string, Heatmap>());
  return useMemo(() => {
    const charts = subjects.map((subject) => ({
      subject,
      data: heatmap(grid, reports, metric, subject.ids, before.current.get(chartKey(metric, subject))),
    }));
    before.current = new Map(charts.map(({ subject, data }) => [chartKey(metric, subject), data]));
    return charts;
  }, [subjects, grid, reports, metric]);
}

function chartKey(metric: Metric, subject: ChartSubject): string {
  return [metric.id, ...subject.ids].join(' ');
}

/** Whose charts a metric has. */
function subjectsOf(metric: Metric, contributors: readonly Contributor[]): ChartSubject[] {
  if (metric.per === 'tensor') return [{ ids: [], contributors: [] }];
  if (metric.per === 'contributor') return contributors.map((c) => ({ ids: [c.id], contributors: [c] }));
  return contributors.flatMap((a, i) =>
    contributors.slice(i + 1).map((b) => ({ ids: [a.id, b.id], contributors: [a, b] })),
  );
}
