import { useDeferredValue, useMemo } from 'react';
import { absenceOf, constantReason, defaultMetric, isFlat, nextMetric } from '../charts/default-view';
import {
  awaitsMerge,
  type Metric,
  type MetricId,
  measure,
  metricById,
  type Subject,
} from '../charts/metrics';
import { formatBytes, formatCounted } from '../format/quantity';
import { Message } from '../parts/Message';
import { useSameList } from '../parts/use-same-list';
import { REST_MS, useSettled } from '../parts/use-settled';
import { measureDeltas } from '../state/delta-statistics';
import { setView, showTab } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';
import { isLinear, type LayersView, linearValues, useLayersView } from './columns';
import { LayersBar } from './LayersBar';
import { LayersCanvas } from './LayersCanvas';
import { LayersTable } from './LayersTable';
import { LooseStrip } from './LooseStrip';
import { RangeLine } from './RangeLine';
import { RunsStrip } from './RunsStrip';
import { type LayersRun, reportsFor, shownRuns, useRuns } from './runs';
import { subjectOf } from './subject';

/** What the shown runs did to each layer, and how they differ. */
export function LayersTab() {
  const runs = useRuns();
  const shown = useShown(runs);
  const failed = useFacts((s) => (s.plan.status === 'failed' ? s.plan.error : null));
  if (shown.every((run) => run.tensors.length === 0)) {
    return (
      <div className="screen">
        {failed ? <Message tone="error" title={failed.message} hint={failed.hint} /> : <Nothing />}
        {runs.length > 1 ? <RunsStrip runs={runs} /> : null}
      </div>
    );
  }
  return <Layers runs={runs} shown={shown} />;
}

/** The shown runs; the same list while they are the same. */
function useShown(runs: readonly LayersRun[]): readonly LayersRun[] {
  const shown = shownRuns(runs);
  return useSameList(shown);
}

function Nothing() {
  const opening = useFacts((s) => s.opening.length > 0 || s.engine.status === 'starting');
  return (
    <div className="empty" role="status">
      <strong>{opening ? 'Opening the models…' : 'Nothing to draw yet'}</strong>
      <span>Rows and columns come from the plan.{opening ? '' : ' Complete the recipe first.'}</span>
    </div>
  );
}

function Layers({ runs, shown }: { runs: readonly LayersRun[]; shown: readonly LayersRun[] }) {
  const chosen = useFacts((s) => s.view.metric);
  const subject = useFacts((s) => s.view.subject);
  const filter = useFacts((s) => s.view.filter);
  const first = shown[0]!;
  const id = chosen ?? defaultMetric(first.traits, (m) => valuesOf(first, m));
  const metric = metricById(id);
  const ids = useMemo(
    () => subjectOf(metric, subject, first.contributors),
    [metric, subject, first.contributors],
  );
  const wanted = useDeferredValue(filter);
  const view = useLayersView(shown, metric, ids ?? NOBODY, wanted);
  const absent = absenceOf(metric, first.traits);
  // the numbers follow once a slider rests
  const later = useDeferredValue(
    useSettled(view, shown.some((run) => run.state === 'predicted') ? REST_MS : 0),
  );
  return (
    <div className="screen layers-screen">
      <FirstError />
      <RunsStrip runs={runs} />
      <LayersBar metric={metric} subject={ids ?? NOBODY} view={view} />
      {(absent ??
      (ids === null ? `This recipe has no two models for ${metric.label.toLowerCase()}.` : null)) ? (
        <p className="empty" role="status">
          {absent ?? `${metric.label} compares two models; this recipe has only one.`}{' '}
          <Next after={metric.id} run={first} />
        </p>
      ) : (
        <>
          <Finding view={view} run={first} />
          <LayersCanvas view={view} />
          <RangeLine view={later} />
          <LooseStrip view={later} />
        </>
      )}
      <LayersTable view={later} />
    </div>
  );
}

const NOBODY: Subject = [];

/** What is known of a metric over the linear layers, for the first of its subjects. */
function valuesOf(run: LayersRun, metric: Metric): number[] {
  const subject = subjectOf(metric, null, run.contributors);
  if (!subject) return [];
  const reports = reportsFor(run, metric);
  return run.tensors.filter(isLinear).flatMap(({ name }) => {
    const report = reports.get(name);
    if (!report || awaitsMerge(metric, report)) return [];
    return measure(metric.id, report, subject)?.value ?? [];
  });
}

/** What the picture says, in a sentence; where it is of one color, why. */
function Finding({ view, run }: { view: LayersView; run: LayersRun }) {
  const { metric, columns, difference } = view;
  const values = linearValues(columns[0]!.data);
  if (values.length === 0) return <Unknown view={view} run={run} />;
  if (columns.every(({ data }) => isFlat(metric, linearValues(data)))) {
    return (
      <p className="layers-finding" role="status">
        {metric.label} is {metric.format(columns[0]!.data.mean ?? 0)} in every layer.{' '}
        {constantReason(metric, run.traits)} <Next after={metric.id} run={run} />
      </p>
    );
  }
  const shown = difference ? difference.data : columns[0]!.data;
  const cells = shown.rows.flatMap((row) => row.cells.flatMap((cell) => (cell?.measured ? [cell] : [])));
  const sorted = cells.sort((a, b) => a.measured!.value - b.measured!.value);
  const [least, most] = [sorted[0]!, sorted.at(-1)!];
  const gap = most.measured!.value - least.measured!.value;
  // no ranking where the errors are as large as what is ranked
  const isCertain = gap > 2 * (most.measured!.error + least.measured!.error);
  const text = (cell: typeof least) =>
    `${(difference?.metric ?? metric).format(cell.measured!.value)} (layer ${cell.layer}, ${cell.module})`;
  const unmeasured = columns[0]!.run.state === 'running' ? cellsLeft(view) : '';
  return (
    <p className="layers-finding" role="status">
      {difference ? 'B less A' : metric.label}:{' '}
      {isCertain
        ? `from ${text(least)} to ${text(most)}`
        : `${metric.format(columns[0]!.data.mean ?? 0)} on average`}
      . <span className="quiet">{metric.meaning}</span> {unmeasured}
      <Badge view={view} />
    </p>
  );
}

function cellsLeft({ columns }: LayersView): string {
  const { run } = columns[0]!;
  return `${run.reports.size} of ${formatCounted(run.tensors.length, 'tensor')} merged. `;
}

/** NaN and infinities, where there are any. */
function Badge({ view: { columns } }: { view: LayersView }) {
  const bad = columns.flatMap(({ letter, run }) => {
    let count = 0;
    for (const report of run.reports.values()) count += report.nonFinite;
    return count > 0 ? [`${letter}: ${formatCounted(count, 'value')} NaN or infinite`] : [];
  });
  return bad.length > 0 ? <strong className="tone-bad"> {bad.join('; ')}</strong> : null;
}

/** Offers another metric, where one tells more. */
function Next({ after, run }: { after: MetricId; run: LayersRun }) {
  const studio = useStudio();
  const next = nextMetric(after, run.traits, (m) => valuesOf(run, m));
  if (next === null) return null;
  return (
    <button type="button" className="link" onClick={() => setView(studio, { metric: next })}>
      Show {metricById(next).label.toLowerCase()}
    </button>
  );
}

/** Nothing is known of this number yet: why, and what there is to do. */
function Unknown({ view, run }: { view: LayersView; run: LayersRun }) {
  const studio = useStudio();
  const profile = useFacts((s) => s.profile);
  const plan = useFacts((s) => s.plan.facts);
  if (run.state === 'running') {
    return (
      <p className="layers-finding" role="status">
        {cellsLeft(view)}
      </p>
    );
  }
  const isKnown = run.reports.size > 0;
  return (
    <p className="layers-finding" role="status">
      {isKnown ? (
        <>
          {run.state === 'exact'
            ? `This merge did not count ${view.metric.label.toLowerCase()}. `
            : `What ${run.traits.method.title.split(' — ')[0]} does to a weight is known once it has merged. `}
          <Next after={view.metric.id} run={run} />
        </>
      ) : profile.status === 'measuring' ? (
        'Measuring the changes…'
      ) : profile.status === 'failed' ? (
        profile.error?.message
      ) : profile.status === 'offered' && plan ? (
        <>
          <button type="button" className="link" onClick={() => void measureDeltas(studio)}>
            Measure the changes now
          </button>{' '}
          (
          {plan.bytesToDownload > 0
            ? `downloads ${formatBytes(plan.bytesToDownload)}`
            : `reads ${formatBytes(plan.bytesToRead)}`}
          ), or merge: numbers appear tensor by tensor.
        </>
      ) : (
        'Not measured yet: press Merge, and numbers appear tensor by tensor.'
      )}
    </p>
  );
}

/** What keeps the recipe from being merged, where the picture would be looked at in vain. */
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
