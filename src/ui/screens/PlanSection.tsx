import { useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { familyLines } from '../../formats/model-family';
import { displayName } from '../../formats/names';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatRate,
  formatSeconds,
  formatShape,
} from '../../formats/quantity';
import type { BackendKind } from '../../reports/backend';
import type { Progress } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import type { PlanProblem, PlanReport, PlanTensor } from '../../reports/plan';
import { Button } from '../parts/Button';
import { ErrorCard, Message } from '../parts/Message';
import { Costs, FoldedList, Section, Swatch } from '../parts/Section';
import { ToolBar } from '../parts/ToolBar';
import { nameColumn, numberColumn, passesFilter, type TableColumn, TensorTable } from '../parts/VirtualTable';
import { runTool, whyNoTool, whyOneEngine } from '../state/job';
import { tensorProgress } from '../state/job-state';
import { mergeGate } from '../state/merge-gate';
import { type Contributor, currentRun } from '../state/runs';
import { notify, type PlanSlice, type Studio, type StudioState, toggleSelected } from '../state/studio';
import { useNarrow, useStudio, useStudioState } from '../studio-context';
import { SampledChanges } from './SampledChanges';

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

const NAMES = { webgpu: 'WebGPU', cpu: 'CPU' } as const;

/** Merges the finished run again on the other engine: same bytes or not, and the speed of each. */
export function VerifySection() {
  const studio = useStudio();
  const report = useStudioState((s) => currentRun(s)?.report ?? null);
  const why = useStudioState(whyNotVerify);
  const verifying = useStudioState((s) => s.job?.kind === 'verification');
  const second = useStudioState((s) =>
    s.verification?.recipeSha256 === currentRun(s)?.report?.recipeSha256 ? s.verification : null,
  );
  if (!report) return null;
  const other = NAMES[otherEngine(report.engine)];
  return (
    <Section title="Verify">
      <p className="small quiet">
        Merged on {NAMES[report.engine]}. Both engines give the same bytes; here you can see it: the merge
        runs again on {other} and keeps nothing.
      </p>
      {verifying ? (
        <ToolBar kinds={['verification']} />
      ) : (
        <div className="row">
          <Button why={why} onClick={() => void verifyRun(studio)}>
            Verify on {other}
          </Button>
        </div>
      )}
      {second && !verifying ? <Result {...verification(report, second)} /> : null}
    </Section>
  );
}

function Result({ engines, differing, tensors }: ReturnType<typeof verification>) {
  return (
    <>
      {differing.length === 0 ? (
        <Message tone="ok" live title="Same bytes on both engines: the largest difference is 0." />
      ) : (
        <Message
          tone="warning"
          live
          title={`The engines disagree in ${formatCounted(differing.length, 'file')}: ${differing.join(', ')}.`}
          hint={
            tensors.length === 0
              ? 'The numbers of every tensor are the same, so it is the last bit of a few values.'
              : `The numbers differ in ${formatCounted(tensors.length, 'tensor')}, first in ${tensors[0]}.`
          }
        />
      )}
      <Costs
        items={engines.map(({ engine, seconds, bytes }) => [
          NAMES[engine],
          formatSeconds(seconds),
          `${formatRate(bytes / Math.max(seconds, 1e-3))} of output`,
        ])}
        wraps
      />
    </>
  );
}

// The same merge once more on the other engine, not stored: are the bytes the same, and how fast is each?

/** Merges the last run again on the other engine and compares. Never rejects. */
async function verifyRun(studio: Studio): Promise<void> {
  const report = currentRun(studio.store.getState())?.report;
  if (!report || whyNotVerify(studio.store.getState()) !== null) return;
  studio.store.setState({ verification: null });
  const { recipe } = report;
  const engine = otherEngine(report.engine);
  const outcome = await runTool(
    studio,
    'verification',
    (onProgress) => studio.worker.merge({ recipe, engine, destination: { kind: 'nowhere' } }, onProgress),
    (progress: Progress) =>
      tensorProgress({
        ...progress,
        phase: progress.phase === 'downloading' ? 'downloading' : 'checking',
      }),
  );
  if ('value' in outcome) studio.store.setState({ verification: outcome.value });
  else if ('error' in outcome) notify(studio, 'error', outcome.error.message, outcome.error.hint);
}

/** Two reports of one recipe, compared. Pure. */
export function verification(first: MergeReport, second: MergeReport) {
  const hashes = new Map(second.shards.map((s) => [s.file, s.hash]));
  const numbers = new Map(second.tensors.map((t) => [t.name, t.outputChange]));
  const differing = first.shards.filter((s) => hashes.get(s.file) !== s.hash).map((s) => s.file);
  const unknown = second.shards.filter((s) => !first.shards.some((f) => f.file === s.file));
  return {
    engines: [first, second].map(({ engine, seconds, shards }) => ({
      ...{ engine, seconds, bytes: shards.reduce((sum, s) => sum + s.bytes, 0) },
    })),
    differing: [...differing, ...unknown.map((s) => s.file)],
    tensors: first.tensors.filter((t) => numbers.get(t.name) !== t.outputChange).map((t) => t.name),
  };
}

/** Why the last run cannot be verified on the other engine now, or null. */
export function whyNotVerify(state: StudioState): string | null {
  const run = currentRun(state);
  if (!run?.report) return 'Nothing has been merged yet.';
  const alone = run.report.engine === 'cpu' ? whyOneEngine(state) : null;
  return alone ?? whyNoTool(state);
}

function otherEngine(engine: BackendKind): BackendKind {
  return engine === 'cpu' ? 'webgpu' : 'cpu';
}
