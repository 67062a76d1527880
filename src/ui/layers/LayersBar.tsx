import { memo, type ReactNode, useCallback, useRef } from 'react';
import type { RecipeTraits } from '../charts/measured';
import { absenceOf, subjectsOf } from '../charts/metric-choice';
import { type Metric, type MetricId, metrics, type Subject } from '../charts/metrics';
import { Button, DownloadIcon } from '../parts/Button';
import { Select } from '../parts/fields';
import { Menu } from '../parts/Menu';
import type { Contributor } from '../state/runs';
import { noticed, setView } from '../state/studio';
import { useStudio } from '../studio-context';
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
  /** The picture in words. */
  children?: ReactNode;
}

/** Which number of whom, what it shows, and its files. */
export function LayersBar({ metric, subject, view, runs, children }: LayersBarProps) {
  const latest = useRef<ShownLayers>({ view, runs });
  latest.current = { view, runs };
  const shown = useCallback(() => latest.current, []);
  const { traits, contributors } = view.columns[0]!.run;
  return (
    <div className="row wrap apart layers-bar">
      <Choice metric={metric} subject={subject} traits={traits} contributors={contributors} />
      {children}
      <LayersExport empty={runs.every((run) => run.reports.size === 0)} shown={shown} />
    </div>
  );
}

interface ChoiceProps extends Pick<LayersBarProps, 'metric' | 'subject'> {
  traits: RecipeTraits;
  contributors: readonly Contributor[];
}

function optionsOf(per: Metric['per'], traits: RecipeTraits) {
  return metrics.flatMap((m) => {
    const label = `${m.label}${absenceOf(m, traits) === null ? '' : ' (not in this recipe)'}`;
    return m.per === per ? [{ value: m.id, label }] : [];
  });
}

/** Memoized, so that a step of a slider does not draw it again. */
const Choice = memo(function Choice({ metric, subject, traits, contributors }: ChoiceProps) {
  const studio = useStudio();
  const subjects = subjectsOf(metric, contributors);
  return (
    <>
      <label className="row tight small">
        Metric
        <Select<MetricId>
          className="field"
          aria-label="Metric"
          value={metric.id}
          groups={GROUPS.map(({ per, label }) => ({ label, options: optionsOf(per, traits) }))}
          onChange={(chosen) => setView(studio, { metric: chosen })}
        />
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
    </>
  );
});

const CHOICES = [
  { value: 'svg', label: 'Figure as SVG', hint: 'the shown runs, their difference, means and a caption' },
  { value: 'png', label: 'Figure as PNG', hint: 'the same, 300 dpi' },
  { value: 'pdf', label: 'Figure as PDF', hint: 'the same, a page of its size' },
  {
    value: 'csv',
    label: 'Numbers as CSV',
    hint: 'in full precision: run, tensor, metric, value, exact or predicted',
  },
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
    await exportLayers(kind, shown());
  };
  return (
    <Menu
      trigger={
        <Button icon={DownloadIcon} className="end" aria-label="Export the picture and its numbers">
          Export
        </Button>
      }
      actions={CHOICES.map(({ value, ...choice }) => ({
        ...choice,
        why: empty ? 'Nothing is measured yet.' : null,
        act: () => void noticed(studio, () => save(value)),
      }))}
    />
  );
});
