import { useDeferredValue, useEffect, useMemo } from 'react';
import { formatBytes, formatCounted } from '../../formats/quantity';
import { cellPlace, linearValues, meanMeasured } from '../charts/heatmap-data';
import { type Measured, valueText } from '../charts/measured';
import { absenceOf, defaultMetric, isFlat, subjectOf } from '../charts/metric-choice';
import { isAwaited, type Metric, type MetricId, measure, metricById, type Subject } from '../charts/metrics';
import { LinkButton } from '../parts/Button';
import { REST_MS, useDebounced, useSameList } from '../parts/hooks';
import { Message } from '../parts/Message';
import { measureDeltas } from '../state/delta-statistics';
import { whyNotOpen } from '../state/named-models';
import { setView } from '../state/studio';
import { useSlice, useStudio, useStudioState } from '../studio-context';
import { isLinear, type LayersView, useLayersView } from './columns';
import { LayersBar } from './LayersBar';
import { LayersCanvas } from './LayersCanvas';
import { LayersTable } from './LayersTable';
import { RunsStrip } from './RunsStrip';
import { type LayersRun, reportsFor, shownRuns, useRuns, writesFactors } from './runs';
import { useTextEffects } from './text-effects';

/** Effects of the shown runs on each layer, and the differences between runs. */
export function LayersTab() {
  const runs = useRuns();
  const all = useShown(runs);
  const shown = useSameList(all.filter((run) => !writesFactors(run)));
  const failed = useStudioState((s) => (s.plan.status === 'failed' ? s.plan.error : null));
  if (shown.every((run) => run.tensors.length === 0)) {
    return (
      <div className="stack loose screen">
        {failed ? (
          <Message tone="error" title={failed.message} hint={failed.hint} />
        ) : (
          <Nothing factors={all.length > shown.length} />
        )}
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

/** @param factors runs were left out because they write a LoRA */
function Nothing({ factors }: { factors: boolean }) {
  const opening = useStudioState((s) => s.opening.length > 0 || s.engine.status === 'starting');
  const closed = useStudioState((s) => whyNotOpen(s)?.why ?? null);
  const words = factors
    ? 'The output is the factors of a LoRA: the place LoRA shows what each of them is made of.'
    : 'Nothing to draw yet: complete the recipe first.';
  return (
    <p className="empty" role="status">
      {opening ? 'Opening the models…' : (closed ?? words)}
    </p>
  );
}

function Layers({ runs, shown }: { runs: readonly LayersRun[]; shown: readonly LayersRun[] }) {
  const chosen = useStudioState((s) => s.view.metric);
  const { subject, filter } = useSlice('view', 'subject', 'filter');
  const first = shown[0]!;
  // it looks at several numbers: once a slider rests
  const rested = useDebounced(first, first.state === 'predicted' ? REST_MS : 0);
  const known = rested.traits === first.traits && rested.state === first.state ? rested : first;
  const compares = shown.length > 1;
  const { usual, instead } = useOpenedMetric(known, compares);
  const id = chosen ?? usual;
  const metric = metricById(id);
  const { contributors } = shown.find((run) => absenceOf(metric, run.traits) === null) ?? first;
  const ids = useMemo(() => subjectOf(metric, subject, contributors), [metric, subject, contributors]);
  const wanted = useDeferredValue(filter);
  const effects = useTextEffects(metric, shown);
  const view = useLayersView(effects.runs, metric, ids ?? NOBODY, wanted);
  const absent = view.columns.every(({ why }) => why) ? view.columns[0]!.why : null;
  // the numbers follow once a slider rests
  const later = useDeferredValue(
    useDebounced(view, shown.some((run) => run.state === 'predicted') ? REST_MS : 0),
  );
  return (
    <div className="stack loose screen layers-screen">
      <RunsStrip runs={runs} />
      <LayersBar metric={metric} subject={ids ?? NOBODY} view={view} runs={effects.runs}>
        {absent || effects.why ? null : <Finding view={view} />}
      </LayersBar>
      {absent || effects.why ? (
        <p className="empty" role="status">
          {effects.why ?? absent}
        </p>
      ) : (
        <>
          {instead !== null && chosen === null ? (
            <p className="small quiet" role="status">
              {instead} {metric.label} is shown instead.
            </p>
          ) : null}
          {effects.note ? <p className="small quiet">{effects.note}</p> : null}
          <LayersCanvas view={view} />
        </>
      )}
      <LayersTable view={later} />
    </div>
  );
}

const NOBODY: Subject = [];

/**
 * The metric that is shown where none was chosen: the most telling of the first numbers. It stays, whatever method, runs and
 * numbers become; only where a recipe lacks it another is shown, which then stays.
 */
function useOpenedMetric(run: LayersRun, compares: boolean): { usual: MetricId; instead: string | null } {
  const studio = useStudio();
  const opened = useStudioState((s) => s.view.opened);
  const absence = (id: MetricId | undefined | null) => (id ? absenceOf(metricById(id), run.traits) : null);
  const stays = opened !== null && absence(opened.metric) === null;
  const first = useMemo(
    () => (stays ? null : defaultMetric(run.traits, (metric) => measuredOf(run, metric), compares)),
    [stays, run, compares],
  );
  useEffect(() => {
    if (first === null) return;
    const metric = metricById(first);
    const values = measuredOf(run, metric).map((m) => m.value);
    const isWhole = values.length > 0 && values.length === run.tensors.filter(isLinear).length;
    // a picture that begins to fill chooses nothing
    if (!isWhole && isFlat(metric, values)) return;
    setView(studio, { opened: { metric: first, insteadOf: opened?.metric ?? null } });
  }, [studio, first, run, opened]);
  return { usual: first ?? opened!.metric, instead: absence(opened?.metric) ?? absence(opened?.insteadOf) };
}

/** Values of a metric over the linear layers, for the first of its subjects. */
function measuredOf(run: LayersRun, metric: Metric): Measured[] {
  const subject = subjectOf(metric, null, run.contributors);
  if (!subject) return [];
  const reports = reportsFor(run, metric);
  return run.tensors.filter(isLinear).flatMap(({ name }) => {
    const report = reports.get(name);
    if (!report || isAwaited(metric, report)) return [];
    return measure(metric, report, subject) ?? [];
  });
}

/** The picture in a sentence; where it is of one color, the reason. */
function Finding({ view }: { view: LayersView }) {
  const { metric, difference: between } = view;
  const columns = view.columns.filter(({ why }) => !why);
  const unknown = columns.find(({ data }) => data.mean === null);
  if (view.grid.layers.length === 0) return null;
  // effects are on their way
  if (unknown)
    return unknown.run.reports.size > 0 && unknown.run.state !== 'running' ? null : (
      <Unknown view={view} run={unknown.run} />
    );
  const difference = between?.why ? null : between;
  if (columns.every(({ data }) => isFlat(metric, linearValues(data)))) {
    return (
      <p role="status">
        {metric.label} is {allMeans(metric, columns)} in every layer: there is nothing to compare.
      </p>
    );
  }
  const shown = (difference ?? columns[0]!).data;
  const cells = shown.rows.flatMap((row) => row.cells.flatMap((cell) => (cell?.measured ? [cell] : [])));
  const sorted = cells.sort((a, b) => a.measured!.value - b.measured!.value);
  const [least, most] = [sorted[0]!, sorted.at(-1)!];
  const shownMetric = difference?.metric ?? metric;
  const gap = most.measured!.value - least.measured!.value;
  // no ranking where the errors are as large as the differences
  const isCertain = gap > 2 * (most.measured!.error + least.measured!.error);
  const text = (cell: typeof least) => `${valueText(shownMetric, cell.measured!)} (${cellPlace(cell)})`;
  const unmeasured = columns[0]!.run.state === 'running' ? cellsLeft(view) : '';
  return (
    <p role="status">
      {difference ? 'B minus A' : metric.label}:{' '}
      {isCertain
        ? `from ${text(least)} to ${text(most)}`
        : `${valueText(shownMetric, meanMeasured(cells.map((cell) => cell.measured!))!)} on average`}
      . <span className="quiet">{metric.meaning}</span> {unmeasured}
      <Badge view={view} />
    </p>
  );
}

/** `51.3 %`, of two runs `51.3 % (A) and 51.7 % (B)`. */
function allMeans(metric: Metric, columns: LayersView['columns']): string {
  const means = columns.map(({ letter, data }) => ({ letter, text: metric.format(data.mean ?? 0) }));
  const isOne = new Set(means.map(({ text }) => text)).size === 1;
  return isOne ? means[0]!.text : means.map(({ letter, text }) => `${text} (${letter})`).join(', ');
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

/** Nothing is known of this number yet: why, and what there is to do. */
function Unknown({ view, run }: { view: LayersView; run: LayersRun }) {
  const studio = useStudio();
  const deltaStatistics = useStudioState((s) => s.deltaStatistics);
  const plan = useStudioState((s) => s.plan.report);
  if (run.state === 'running') {
    return <p role="status">{cellsLeft(view)}</p>;
  }
  return (
    <p role="status">
      {deltaStatistics.status === 'measuring' ? (
        'Measuring the changes…'
      ) : deltaStatistics.status === 'failed' ? (
        deltaStatistics.error?.message
      ) : deltaStatistics.status === 'offered' && plan ? (
        <>
          <LinkButton onClick={() => void measureDeltas(studio)}>Measure the changes now</LinkButton> (
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
