import { useShallow } from 'zustand/react/shallow';
import { familyLines } from '../../formats/model-family';
import { displayName } from '../../formats/names';
import { formatBytes, formatCount, formatCounted } from '../../formats/quantity';
import type { PlanProblem, PlanReport } from '../../reports/plan';
import { Button } from '../parts/Button';
import { ErrorCard, Message } from '../parts/Message';
import { FoldedList } from '../parts/Section';
import { mergeGate } from '../state/merge-gate';
import { planNow } from '../state/plan';
import { useStudio, useStudioState } from '../studio-context';
import { SampledChanges } from './SampledChanges';

/** Problems of the plan, or why there is no plan, before any weight is downloaded. */
export function PlanProblems() {
  const studio = useStudio();
  const plan = useStudioState((s) => s.plan);
  const failed = useStudioState((s) => s.engine.error);
  const gate = useStudioState(useShallow(mergeGate));
  const error = failed ?? (plan.status === 'failed' ? plan.error : null);
  const { report } = plan;
  return (
    <div className="stack plan-problems" data-stale={plan.status === 'stale' || undefined}>
      {error ? (
        <>
          <ErrorCard error={error} />
          {failed ? null : <Button onClick={() => void planNow(studio)}>Plan again</Button>}
        </>
      ) : report ? (
        <>
          <Problems problems={report.problems} />
          <Family family={report.family ?? []} />
          {report.stages ? <Stages stages={report.stages} /> : null}
          <SampledChanges />
        </>
      ) : (
        <p className="quiet" role="status">
          {gate.open ? 'Planning…' : [gate.why, gate.remedy].filter(Boolean).join(' ')}
        </p>
      )}
    </div>
  );
}

/** The tree that the models come from, with licenses; nothing where no model has parents. */
function Family({ family }: { family: NonNullable<PlanReport['family']> }) {
  if (!family.some(({ parents }) => parents.length > 0)) return null;
  const lines = familyLines(family).map(
    ({ depth, id, said }) => `${'  '.repeat(depth)}${displayName(id)}${said === '' ? '' : ` – ${said}`}`,
  );
  return (
    <details open>
      <summary className="small quiet">
        Family of {formatCounted(family.length, 'model')}, by their pages on the Hub
      </summary>
      <pre className="mono small scroll">{lines.join('\n')}</pre>
    </details>
  );
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
