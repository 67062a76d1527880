import { lazy, type ReactNode, Suspense } from 'react';
import { formatCounted, formatShape } from '../../formats/quantity';
import type { TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { changing, differenceIn, type Measured, valueParts } from '../charts/measured';
import { differenceMetric, subjectsOf } from '../charts/metric-choice';
import { isAwaited, type Metric, measure, metrics } from '../charts/metrics';
import { type LayersRun, reportsFor, shownRuns, useRuns, writesFactors } from '../layers/runs';
import { Button, CloseIcon } from '../parts/Button';
import { NumberTable } from '../parts/NumberTable';
import { BrokenName, RunLetter, Section, Swatch } from '../parts/Section';
import { deltaKey } from '../state/delta-statistics';
import { setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { detailOf } from '../tool-details';

const ChangeCharts = lazy(() => import('./ChangeCharts').then((m) => ({ default: m.ChangeCharts })));

/** Most groups (merged result, models, pairs of models) that are listed; beyond them only the chosen one is. */
const MOST_GROUPS = 8;

/** Every number of one tensor in the shown runs, and B − A of two. */
function TensorRuns({ name, runs }: { name: string; runs: readonly LayersRun[] }) {
  const chosen = useStudioState((s) => s.view.subject);
  const { contributors } = runs[0]!;
  const groups = new Map<string, { metric: Metric; values: (Measured | null)[] }[]>();
  for (const metric of metrics) {
    for (const { ids, key, label } of subjectsOf(metric, contributors)) {
      const isFirst = metric.per === 'tensor' || groups.size < MOST_GROUPS || groups.has(label);
      if (!isFirst && key !== chosen) continue;
      const values = runs.map((run) => {
        const report = reportsFor(run, metric).get(name);
        return report && !isAwaited(metric, report) ? measure(metric, report, ids) : null;
      });
      const rows = groups.get(label) ?? [];
      if (values.some((value) => value)) groups.set(label, [...rows, { metric, values }]);
    }
  }
  const isPair = runs.length === 2;
  return (
    <Section title={runs.length > 1 ? 'Shown runs' : 'Numbers'}>
      <NumberTable
        className="tensor-runs"
        heads={[
          <span key="number" className="visually-hidden">
            Number
          </span>,
          ...runs.map((run, i) => (
            <span key={run.id} title={run.name}>
              <RunLetter place={i} />
            </span>
          )),
          ...(isPair ? ['B − A'] : []),
        ]}
        rows={[...groups].flatMap(([whose, rows]) => [
          { key: whose, cells: [whose] },
          ...rows.map(({ metric, values }) => ({
            key: `${whose} ${metric.id}`,
            cells: [
              metric.label,
              ...values.map((value) => numberCell(metric, value)),
              ...(isPair ? [numberCell(differenceMetric(metric), between(values))] : []),
            ],
          })),
        ])}
      />
    </Section>
  );
}

function between([a, b]: readonly (Measured | null)[]): Measured | null {
  return a && b ? differenceIn(a, b) : null;
}

/** A number with its error below it: four runs stand side by side in the panel. */
function numberCell(metric: Metric, value: Measured | null): ReactNode {
  const [text, error] = value ? valueParts(metric, value) : ['–', null];
  return (
    <>
      {text}
      {error === null ? null : <small> {error}</small>}
    </>
  );
}

/** The panel beside a tab: its selection. */
export function Inspector() {
  const detail = detailOf(useStudioState((s) => s.view.tab));
  return detail ? <Suspense>{detail}</Suspense> : <TensorOfShown />;
}

/** The selected tensor of the first shown run, and its numbers in all of them. */
function TensorOfShown() {
  const selected = useStudioState((s) => s.view.selected);
  const shown = shownRuns(useRuns());
  const [run] = shown;
  const tensor = run?.tensors.find((t) => t.name === selected);
  if (!run || !tensor) return null;
  const { name, shape, dtype, elements } = tensor;
  const report = run.reports.get(name);
  return (
    <Panel>
      <Section title="Tensor">
        <h3 className="tensor-title">
          <BrokenName name={name} />
        </h3>
        <p className="small quiet">
          {formatShape(shape)} · {dtype} · {formatCounted(elements, 'element')}
        </p>
      </Section>
      {tensor.copied ? (
        <p className="quiet">
          No contributor changes this tensor: its bytes are copied from the base, untouched.
        </p>
      ) : report && !writesFactors(run) ? (
        <>
          <TensorRuns name={name} runs={shown} />
          <Changes run={run} report={report} />
        </>
      ) : (
        <ChangedBy run={run} tensor={tensor} />
      )}
    </Panel>
  );
}

/** What the contributors of a run do to a tensor, drawn. */
function Changes({ run, report }: { run: LayersRun; report: TensorReport }) {
  const statistics = useStudioState((s) =>
    s.deltaStatistics.key === deltaKey(s)
      ? s.deltaStatistics.tensors.find((t) => t.name === report.name)
      : undefined,
  );
  return (
    <>
      {report.nonFinite > 0 ? (
        <p className="tone-bad">{formatCounted(report.nonFinite, 'value')} NaN or infinite</p>
      ) : null}
      {changing(report).map((numbers) => {
        const contributor = run.contributors.find((c) => c.id === numbers.id);
        return contributor && statistics ? (
          <Section
            key={numbers.id}
            className="contributor-numbers"
            title={
              <span className="row">
                <Swatch color={contributor.color} />
                {contributor.label}
              </span>
            }
          >
            <Suspense>
              <ChangeCharts {...{ statistics, numbers, contributor }} />
            </Suspense>
          </Section>
        ) : null;
      })}
    </>
  );
}

function ChangedBy({ run, tensor }: { run: LayersRun; tensor: PlanTensor }) {
  const factor = writesFactors(run);
  return (
    <Section title={factor ? 'Made of' : 'Changed by'}>
      <ul className="stack">
        {tensor.contributors.map((i) => (
          <li key={i} className="row">
            <Swatch color={run.contributors[i]?.color ?? 0} />
            {run.contributors[i]?.label}
          </li>
        ))}
      </ul>
      <p className="small quiet">
        {factor
          ? 'A factor of a LoRA: what it changes is not measured.'
          : 'Not measured yet. Its numbers appear here once the merge has reached it.'}
      </p>
    </Section>
  );
}

/** The panel itself, which a tool fills for its own place; there for a selection, which can be let go. */
export function Panel({ children }: { children: ReactNode }) {
  const studio = useStudio();
  return (
    <aside className="stack roomy scroll inspector" aria-label="Inspector">
      <Button
        icon={CloseIcon}
        variant="quiet"
        className="inspector-close"
        tip="Let go of the tensor"
        aria-label="Close the tensor"
        onClick={() => setView(studio, { selected: null })}
      />
      {children}
    </aside>
  );
}
