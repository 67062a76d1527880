import { memo, useCallback, useRef } from 'react';
import type { RecipeTraits } from '../charts/measured';
import { absenceOf, subjectsOf } from '../charts/metric-choice';
import { type Metric, type MetricId, metrics, type Subject } from '../charts/metrics';
import { ExportMenu } from '../parts/ExportMenu';
import { Segmented } from '../parts/Segmented';
import { Select } from '../parts/Select';
import type { Contributor } from '../state/runs';
import { notifyError, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import type { LayersView, ShownLayers } from './columns';
import type { LayersRun } from './runs';

const GROUPS = [
  { per: 'tensor', label: 'Merged result' },
  { per: 'contributor', label: 'Each model' },
  { per: 'pair', label: 'Two models' },
] as const;

interface LayersBarProps {
  metric: Metric;
  subject: Subject;
  view: LayersView;
  /** The shown runs. */
  runs: readonly LayersRun[];
}

/** Which number of whom, on which scale. */
export function LayersBar({ metric, subject, view, runs }: LayersBarProps) {
  const latest = useRef<ShownLayers>({ view, runs });
  latest.current = { view, runs };
  const shown = useCallback(() => latest.current, []);
  const { traits, contributors } = view.columns[0]!.run;
  return (
    <Bar
      metric={metric}
      subject={subject}
      traits={traits}
      contributors={contributors}
      empty={runs.every((run) => run.reports.size === 0)}
      shown={shown}
    />
  );
}

interface BarProps {
  metric: Metric;
  subject: Subject;
  traits: RecipeTraits;
  contributors: readonly Contributor[];
  empty: boolean;
  shown(): ShownLayers;
}

/** Memoized, so that a step of a slider does not draw it again. */
const Bar = memo(function Bar({ metric, subject, traits, contributors, empty, shown }: BarProps) {
  const studio = useStudio();
  const subjects = subjectsOf(metric, contributors);
  return (
    <div className="row wrap apart layers-bar">
      <label className="row tight small">
        Metric
        <select
          className="field"
          aria-label="Metric"
          value={metric.id}
          onChange={(event) => setView(studio, { metric: event.target.value as MetricId })}
        >
          {GROUPS.map(({ per, label }) => (
            <optgroup key={per} label={label}>
              {metrics
                .filter((m) => m.per === per)
                .map((m) => (
                  <option key={m.id} value={m.id}>
                    {m.label}
                    {absenceOf(m, traits) === null ? '' : ' (not in this recipe)'}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </label>
      {subjects.length > 1 ? (
        <label className="row tight small">
          of
          <Select
            className="field"
            aria-label="Of which model"
            value={subject.join(' ')}
            options={subjects.map(({ key, label }) => ({ value: key, label }))}
            onChange={(next) => setView(studio, { subject: next })}
          />
        </label>
      ) : null}
      <ScaleChoice />
      <div className="layers-actions">
        <LayersExport empty={empty} shown={shown} />
      </div>
    </div>
  );
});

export const ScaleChoice = memo(function ScaleChoice() {
  const studio = useStudio();
  const scale = useStudioState((s) => s.view.scale);
  return (
    <span className="row small">
      Colors
      <Segmented
        label="Color scale"
        value={scale}
        options={[
          { value: 'percentile', label: '2–98 % of cells' },
          { value: 'full', label: 'Full range' },
        ]}
        onChange={(next) => setView(studio, { scale: next })}
      />
    </span>
  );
});

const CHOICES = [
  { value: 'svg', label: 'Figure as SVG', hint: 'the shown runs, their difference, means and a caption' },
  { value: 'png', label: 'Figure as PNG', hint: 'the same, 300 dpi' },
  { value: 'pdf', label: 'Figure as PDF', hint: 'the same, a page of its size' },
  {
    value: 'csv',
    label: 'Numbers as CSV',
    hint: 'long form: run, tensor, metric, value, exact or predicted',
  },
  { value: 'json', label: 'Numbers as JSON', hint: 'in full precision' },
  { value: 'html', label: 'Report as HTML', hint: 'recipes, hashes, times and charts of all shown runs' },
] as const;

interface LayersExportProps {
  /** Nothing is measured yet. */
  empty: boolean;
  /** Content of the canvas at the time of the call. */
  shown(): ShownLayers;
}

/** Saves the content of Layers. */
const LayersExport = memo(function LayersExport({ empty, shown }: LayersExportProps) {
  const studio = useStudio();
  const save = async (kind: (typeof CHOICES)[number]['value']) => {
    const { exportLayers } = await import('../export/exported-files');
    await exportLayers(kind, shown(), studio.store.getState().view.scale);
  };
  return (
    <ExportMenu
      label="Export the picture and its numbers"
      choices={CHOICES}
      why={empty ? 'Nothing is measured yet.' : null}
      onChoose={(kind) => void save(kind).catch((thrown: unknown) => notifyError(studio, thrown))}
    />
  );
});
