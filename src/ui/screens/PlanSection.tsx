import { useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { formatBytes, formatCount, formatCounted, formatSeconds, formatShape } from '../../formats/quantity';
import type { RecipeParameters } from '../../formats/recipe';
import type { PlanProblem, PlanReport, PlanTensor } from '../../reports/plan';
import { ErrorCard } from '../parts/ErrorCard';
import { Message } from '../parts/Message';
import { Swatch } from '../parts/Swatch';
import {
  noTensorWords,
  passesFilter,
  type TableColumn,
  TableFilter,
  TensorName,
  VirtualTable,
} from '../parts/VirtualTable';
import { buildRecipe } from '../state/built-recipe';
import { mergeGate } from '../state/merge-gate';
import { type Contributor, type FinishedRun, finishedRuns } from '../state/runs';
import { methodOf, toggleSelected } from '../state/studio';
import type { PlanSlice, StudioState } from '../state/studio-state';
import { useNarrow, useStudio, useStudioState } from '../studio-context';

// How long a merge will take, by merges that were made here. Pure.

/** A merge so many times smaller predicts nothing: most of its time was not spent on weights. */
const TIMES_SMALLER = 20;

/**
 * Predicted seconds of the planned merge once its inputs are here, by the saved run of the same method, engine and choices
 * that is nearest in size; time grows linearly in elements and contributors. Null where there is none, or only far smaller
 * ones.
 */
export function expectedSeconds(state: StudioState): number | null {
  const { plan, recipe, models, engine } = state;
  if (!plan.report?.clean || plan.report.stages || !engine.info) return null;
  const asked = buildRecipe(recipe, models, methodOf(recipe));
  const kind = engine.choice === 'auto' ? engine.info.auto : engine.choice;
  const size = work(plan.report.tensors);
  const alike = ({ report }: FinishedRun) =>
    report.engine === kind &&
    !report.stagesMerged &&
    report.recipe.mergeMethod === asked.mergeMethod &&
    choices(report.recipe.parameters) === choices(asked.parameters);
  const apart = (run: FinishedRun) => Math.abs(Math.log(work(run.planned) / size));
  const nearest = finishedRuns(state)
    .filter((run) => alike(run) && work(run.planned) * TIMES_SMALLER >= size)
    .sort((a, b) => apart(a) - apart(b))[0];
  return nearest && size > 0 ? (nearest.report.seconds * size) / work(nearest.planned) : null;
}

/** Elements read: of the base and of every model that changes it. */
function work(tensors: readonly PlanTensor[]): number {
  return tensors.reduce((sum, { elements, contributors }) => sum + elements * (1 + contributors.length), 0);
}

/** Parameters that are words or switches: they decide the kind of work, numbers do not. */
function choices(parameters: RecipeParameters): string {
  return JSON.stringify(
    Object.entries(parameters)
      .filter(([, value]) => typeof value === 'string' || typeof value === 'boolean')
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/** Problems of the plan and its cost, or why there is no plan, before any weight is downloaded. */
export function PlanProblems() {
  const plan = useStudioState((s) => s.plan);
  const failed = useStudioState((s) => s.engine.error);
  const gate = useStudioState(useShallow(mergeGate));
  const error = failed ?? (plan.status === 'failed' ? plan.error : null);
  const { report } = plan;
  return (
    <div className="stack plan-problems" data-stale={plan.status === 'stale' || undefined}>
      {error ? (
        <ErrorCard error={error} />
      ) : report ? (
        <>
          <Problems problems={report.problems} />
          {report.stages ? <Stages stages={report.stages} /> : null}
          <PlanCosts plan={report} />
        </>
      ) : (
        <p className="quiet" role="status">
          {gate.open ? 'Planning…' : [gate.why, gate.remedy].filter(Boolean).join(' ')}
        </p>
      )}
    </div>
  );
}

/** Every output tensor of the plan. */
export function PlanTensors() {
  const { report, contributors, status } = useStudioState((s) => s.plan);
  return report && status !== 'failed' ? (
    <Tensors tensors={report.tensors} contributors={contributors} />
  ) : null;
}

/** What the merge will cost, in one line. */
function PlanCosts({ plan }: { plan: PlanReport }) {
  const seconds = useStudioState(expectedSeconds);
  const computed = plan.tensors.filter((t) => !t.copied).length;
  const words = [
    `${formatCounted(plan.tensors.length, 'tensor')}: ${formatCount(computed)} computed, ${formatCount(plan.tensors.length - computed)} copied`,
    plan.bytesToDownload > 0
      ? `${formatBytes(plan.bytesToDownload)} to download, once`
      : 'nothing to download',
    `${formatBytes(plan.bytesToRead)} to read`,
    `${formatBytes(plan.bytesToWrite)} to write in ${formatCounted(plan.shards, 'shard')} and ${formatCounted(plan.outputFiles.length - plan.shards, 'other file')}`,
    `at most ${formatBytes(plan.peakBytes)} of memory for tiles`,
    ...(seconds === null ? [] : [`≈ ${formatSeconds(seconds)}, as earlier merges here took`]),
  ];
  return <p className="small quiet">{words.join(' · ')}</p>;
}

/** Stages merged before the result, and read from the browser’s storage instead of being saved. */
function Stages({ stages }: { stages: NonNullable<PlanReport['stages']> }) {
  return (
    <Message
      tone="note"
      title={`${formatCounted(stages.length, 'stage')} before the result: ${stages
        .map(
          ({ name, report }) =>
            `${name} (${formatCounted(report.tensors.length, 'tensor')}, ${formatBytes(report.bytesToWrite)})`,
        )
        .join(', ')}`}
      hint="Kept in this browser until the result is merged from it, then removed."
    />
  );
}

const order: readonly PlanProblem['severity'][] = ['error', 'warning', 'note'];

function Problems({ problems }: { problems: readonly PlanProblem[] }) {
  if (problems.length === 0) return null;
  const sorted = [...problems].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  return (
    <ul className="stack tight problems" aria-label="Problems">
      {sorted.map((problem) => (
        <li key={`${problem.code} ${problem.message}`}>
          <Message
            tone={problem.severity}
            title={
              <>
                <span className="visually-hidden">{problem.severity}: </span>
                {problem.message}
              </>
            }
            hint={problem.remedy}
          >
            {problem.tensors && problem.tensors.length > 0 ? (
              <details>
                <summary>{formatCounted(problem.tensors.length, 'tensor')}</summary>
                <ul className="mono small problem-tensors">
                  {problem.tensors.slice(0, 100).map((name) => (
                    <li key={name}>{name}</li>
                  ))}
                  {problem.tensors.length > 100 ? (
                    <li>… {formatCount(problem.tensors.length - 100)} more</li>
                  ) : null}
                </ul>
              </details>
            ) : null}
          </Message>
        </li>
      ))}
    </ul>
  );
}

function Tensors({ tensors, contributors }: Pick<PlanReport, 'tensors'> & Pick<PlanSlice, 'contributors'>) {
  const studio = useStudio();
  const narrow = useNarrow();
  const selected = useStudioState((s) => s.view.selected);
  const [filter, setFilter] = useState('');
  const shown = tensors.filter((t) => passesFilter(filter, `${t.name} ${t.dtype}`));
  return (
    <section className="table-section" aria-label="Output tensors">
      <div className="row wrap apart">
        <TableFilter
          value={filter}
          shown={shown.length}
          of={tensors.length}
          what="output tensor"
          onChange={setFilter}
        />
        <span className="spacer" />
        <ul className="row wrap apart" aria-label="Colors of the contributors">
          {contributors.map((c) => (
            <li key={c.id} className="row">
              <Swatch color={c.color} dot />
              <span className="small">{c.label}</span>
            </li>
          ))}
        </ul>
      </div>
      <VirtualTable
        label="Output tensors"
        rows={shown}
        rowKey={(t) => t.name}
        columns={columns(contributors, narrow)}
        selected={selected}
        onSelect={(name) => toggleSelected(studio, name)}
        empty={noTensorWords(filter, 'There are no output tensors.')}
      />
    </section>
  );
}

function columns(contributors: readonly Contributor[], narrow: boolean): TableColumn<PlanTensor>[] {
  const shape: TableColumn<PlanTensor>[] = [
    { id: 'shape', head: 'Shape', track: '112px', align: 'end', cell: (t) => formatShape(t.shape) },
    { id: 'dtype', head: 'Dtype', track: '60px', cell: (t) => t.dtype },
    {
      id: 'elements',
      head: 'Elements',
      track: '92px',
      align: 'end',
      cell: (t) => formatCount(t.elements),
      sortBy: (t) => t.elements,
    },
  ];
  return [
    {
      id: 'name',
      head: 'Tensor',
      track: 'minmax(120px, 1fr)',
      cell: (t) => <TensorName name={t.name} />,
    },
    ...(narrow ? [] : shape),
    {
      id: 'contributors',
      head: 'Changed by',
      track: narrow ? '92px' : '104px',
      cell: (t) =>
        t.copied ? (
          <span className="faint">{t.leftOut ? 'left out' : 'copied'}</span>
        ) : (
          <span className="dots">
            {t.contributors.map((index) => {
              const c = contributors[index];
              return c ? <Swatch key={c.id} dot color={c.color} label={c.label} /> : null;
            })}
          </span>
        ),
      sortBy: (t) => t.contributors.length,
    },
  ];
}
