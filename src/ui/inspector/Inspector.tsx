import { type ReactNode, Suspense } from 'react';
import type { PlanTensor } from '../../reports/plan';
import { differenceIn, type Measured } from '../charts/measured';
import { differenceMetric, subjectsOf } from '../charts/metric-choice';
import { isAwaited, type Metric, measure, metrics } from '../charts/metrics';
import { valueParts } from '../charts/shown-metric';
import { type LayersRun, reportsFor, shownRuns, useNow, useRuns, writesFactors } from '../layers/runs';
import { Button, CloseIcon } from '../parts/Button';
import { RunLetter, Section } from '../parts/Section';
import { NOW } from '../state/runs';
import { setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { detailOf } from '../tool-details';
import { TensorDetail } from './TensorDetail';

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
    <Section title="Shown runs">
      <table className="tensor-runs plain-table" data-numbers>
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">Number</span>
            </th>
            {runs.map((run, i) => (
              <th key={run.id} scope="col" title={run.name}>
                <RunLetter place={i} />
              </th>
            ))}
            {isPair ? <th scope="col">B − A</th> : null}
          </tr>
        </thead>
        {[...groups].map(([whose, rows]) => (
          <tbody key={whose}>
            <tr>
              <th scope="rowgroup" colSpan={runs.length + (isPair ? 2 : 1)} className="tensor-runs-of">
                {whose}
              </th>
            </tr>
            {rows.map(({ metric, values }) => {
              const [a, b] = values;
              return (
                <tr key={metric.id}>
                  <th scope="row">{metric.label}</th>
                  {values.map((value, i) => (
                    <NumberCell key={runs[i]!.id} metric={metric} value={value} />
                  ))}
                  {isPair ? (
                    <NumberCell
                      metric={differenceMetric(metric)}
                      value={a && b ? differenceIn(a, b) : null}
                    />
                  ) : null}
                </tr>
              );
            })}
          </tbody>
        ))}
      </table>
    </Section>
  );
}

/** A number with its error below it: four runs stand side by side in the panel. */
function NumberCell({ metric, value }: { metric: Metric; value: Measured | null | undefined }) {
  const [text, error] = value ? valueParts(metric, value) : ['–', null];
  return (
    <td>
      {text}
      {error === null ? null : <small> {error}</small>}
    </td>
  );
}

/** The panel beside a tab: its selection. */
export function Inspector() {
  const detail = detailOf(useStudioState((s) => s.view.tab));
  return detail ? <Suspense>{detail}</Suspense> : <MergeInspector />;
}

/** The selected tensor's numbers in the merge. */
function MergeInspector() {
  const selected = useStudioState((s) => s.view.selected);
  const inLayers = useStudioState((s) => s.view.tab === 'layers');
  if (selected === null) return null;
  return inLayers ? <TensorOfShown name={selected} /> : <TensorOfRecipe name={selected} />;
}

/** The tensor in the first column of Layers, with its values in the other columns. */
function TensorOfShown({ name }: { name: string }) {
  const shown = shownRuns(useRuns());
  const tensor = shown[0]?.tensors.find((t) => t.name === name);
  if (!shown[0] || !tensor) return null;
  return (
    <Panel>
      {shown.length > 1 && !writesFactors(shown[0]) ? <TensorRuns name={name} runs={shown} /> : null}
      <TensorOf run={shown[0]} tensor={tensor} />
    </Panel>
  );
}

function TensorOfRecipe({ name }: { name: string }) {
  const now = useNow();
  const tensor = now.tensors.find((t) => t.name === name);
  if (!tensor) return null;
  return (
    <Panel>
      <TensorOf run={now} tensor={tensor} />
    </Panel>
  );
}

function TensorOf({ run, tensor }: { run: LayersRun; tensor: PlanTensor }) {
  return (
    <TensorDetail
      tensor={tensor}
      report={run.reports.get(tensor.name)}
      contributors={run.contributors}
      of={run.id === NOW ? null : run.name}
      factor={writesFactors(run)}
    />
  );
}

/** The panel itself, which a tool fills for its own place; there for a selection, which can be let go. */
export function Panel({ children }: { children: ReactNode }) {
  const studio = useStudio();
  return (
    <aside className="inspector" aria-label="Inspector">
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
