import { useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { formatBytes, formatCount, formatCounted, formatShape } from '../../formats/quantity';
import type { PlanProblem, PlanReport, PlanTensor } from '../../reports/plan';
import { ErrorCard, Message } from '../parts/Message';
import { FoldedList } from '../parts/Section';
import { Swatch } from '../parts/Swatch';
import { nameColumn, numberColumn, passesFilter, type TableColumn, TensorTable } from '../parts/VirtualTable';
import { mergeGate } from '../state/merge-gate';
import type { Contributor } from '../state/runs';
import { toggleSelected } from '../state/studio';
import type { PlanSlice } from '../state/studio-state';
import { useNarrow, useStudio, useStudioState } from '../studio-context';

/** Problems of the plan, or why there is no plan, before any weight is downloaded. */
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

/** Names of a problem that are listed: it may be about every tensor. */
const MOST_NAMES = 100;

function firstOf(names: readonly string[]): readonly string[] {
  const more = names.length - MOST_NAMES;
  return more > 0 ? [...names.slice(0, MOST_NAMES), `… ${formatCount(more)} more`] : names;
}

const order: readonly PlanProblem['severity'][] = ['error', 'warning', 'note'];

function Problems({ problems }: { problems: readonly PlanProblem[] }) {
  if (problems.length === 0) return null;
  const sorted = [...problems].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  return (
    <ul className="stack tight" aria-label="Problems">
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
            <FoldedList
              title={formatCounted(problem.tensors?.length ?? 0, 'tensor')}
              items={firstOf(problem.tensors ?? [])}
            />
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
    <TensorTable
      title="Output tensors"
      label="Output tensors"
      of={tensors.length}
      what="output tensor"
      filter={filter}
      onFilter={setFilter}
      rows={shown}
      rowKey={(t) => t.name}
      columns={columns(contributors, narrow)}
      selected={selected}
      onSelect={(name) => toggleSelected(studio, name)}
    >
      <span className="spacer" />
      <ul className="row wrap apart" aria-label="Colors of the contributors">
        {contributors.map((c) => (
          <li key={c.id} className="row">
            <Swatch color={c.color} dot />
            <span className="small">{c.label}</span>
          </li>
        ))}
      </ul>
    </TensorTable>
  );
}

function columns(contributors: readonly Contributor[], narrow: boolean): TableColumn<PlanTensor>[] {
  const shape: TableColumn<PlanTensor>[] = [
    { id: 'shape', head: 'Shape', track: '112px', align: 'end', cell: (t) => formatShape(t.shape) },
    { id: 'dtype', head: 'Dtype', track: '60px', cell: (t) => t.dtype },
    numberColumn('elements', 'Elements', '92px', (t) => t.elements, formatCount),
  ];
  return [
    nameColumn('Tensor', (t) => t.name),
    ...(narrow ? [] : shape),
    {
      id: 'contributors',
      head: 'Changed by',
      track: narrow ? '92px' : '104px',
      cell: (t) =>
        t.copied ? (
          <span className="faint">{t.leftOut ? 'left out' : 'copied'}</span>
        ) : (
          <span className="row tight">
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
