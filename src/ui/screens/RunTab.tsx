import { formatAbout, formatBytes, formatCount, formatRate, formatSeconds } from '../../formats/quantity';
import { TimeBar } from '../charts/TimeBar';
import type { TimesSpent } from '../charts/time-shares';
import { type Cost, Costs } from '../parts/Costs';
import { ErrorCard } from '../parts/ErrorCard';
import { HashDigits } from '../parts/FileList';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { isKept } from '../state/past-runs';
import { PHASE_TITLES } from '../state/run-log';
import type { RunState } from '../state/runs';
import { currentRun } from '../state/runs';
import { useStudioState } from '../studio-context';
import { LambdaPlot } from './LambdaPlot';
import { Recommended, secondsInAll } from './Recommended';
import { RunExport } from './RunExport';
import { RunLog } from './RunLog';

/** The run at work, or the last one: how far, how fast, where the time goes, what happened. */
export function RunTab() {
  const run = useStudioState(currentRun);
  const kept = useStudioState(isKept);
  if (!run) {
    return (
      <div className="screen">
        <div className="empty" role="status">
          <strong>No merge has run yet</strong>
          <span>Press Merge: progress, the time each phase takes and the log appear here.</span>
        </div>
      </div>
    );
  }
  return (
    <div className="screen run-screen">
      <header className="run-head">
        <h2>{run.title}</h2>
        <p className="quiet">
          {run.methodTitle} · <Status run={run} />
        </p>
        {run.report ? <RunExport run={{ ...run, report: run.report }} /> : null}
      </header>
      {run.error ? <ErrorCard error={run.error} /> : null}
      {run.status === 'cancelled' ? (
        <Message
          tone="note"
          title={
            run.recommended && run.paused
              ? `${stopped(run)}. What was computed is kept: press Continue, or Merge with recommended settings after a reload.`
              : kept
                ? run.paused
                  ? `${stopped(run)}. What was written is kept until you continue, or delete it under Storage.`
                  : `${stopped(run)}. What was written is kept: resume the merge, or discard it.`
                : `${stopped(run)}. Everything that was begun has been removed.`
          }
        />
      ) : null}
      {run.report?.recommended ? (
        <Recommended report={run.report.recommended} contributors={run.contributors} />
      ) : null}
      <Numbers run={run} />
      <Section title="Where the time goes">
        <TimeBar {...timesOf(run)} />
      </Section>
      {run.report?.ahead?.lambda ? (
        <Section title="λ tuning">
          <LambdaPlot lambda={run.report.ahead.lambda} />
        </Section>
      ) : null}
      <Section title="Log" className="log-section">
        <RunLog entries={run.log} />
      </Section>
      {run.report ? <Inputs report={run.report} /> : null}
    </div>
  );
}

/** Of the finished merge, else of the one at work. */
function timesOf({ report, progress }: RunState): TimesSpent {
  return report ?? progress ?? { stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 } };
}

function Status({ run }: { run: RunState }) {
  const cancelling = useStudioState((s) => s.job?.cancelling);
  switch (run.status) {
    case 'running':
      if (cancelling) return <>{run.paused ? 'pausing' : 'cancelling'}</>;
      return <>{run.progress ? PHASE_TITLES[run.progress.phase].toLowerCase() : 'starting'}</>;
    case 'done':
      return <span className="tone-ok">{doneText(run.report)}</span>;
    case 'failed':
      return <span className="tone-bad">failed</span>;
    case 'cancelled':
      return <>{stopped(run).toLowerCase()}</>;
  }
}

/** `done in 1.0 s`; of a recommended merge also the time of its search. */
function doneText(report: RunState['report']): string {
  const merging = formatSeconds(report?.seconds ?? 0);
  if (!report?.recommended) return `done in ${merging}`;
  return `merged in ${merging}, ${formatSeconds(secondsInAll(report.recommended))} with the search`;
}

function stopped(run: RunState): string {
  return run.paused ? 'Paused by you' : 'Canceled';
}

function Numbers({ run }: { run: RunState }) {
  const { progress: p, report } = run;
  const seconds = report?.seconds ?? 0;
  const written = report?.shards.reduce((sum, s) => sum + s.bytes, 0) ?? 0;
  const now = run.status === 'running' ? 'now' : 'when it stopped';
  const items: Cost[] = [
    report
      ? ['Tensors', formatCount(run.planned.length), 'all of them']
      : ['Tensors', formatCount(p?.tensorsDone ?? 0), `of ${formatCount(run.planned.length)}`],
    report
      ? ['Bytes', formatBytes(written), 'of weights written']
      : ['Bytes', formatBytes(p?.bytesDone ?? 0), `of ${formatBytes(p?.bytes ?? 0)}`],
    report
      ? ['Throughput', formatRate(written / Math.max(seconds, 1e-3)), 'on average']
      : ['Throughput', formatRate(p?.bytesPerSecond ?? 0), now],
    report
      ? ['Time', formatSeconds(seconds), 'in total']
      : run.status === 'running'
        ? ['Left', p?.secondsLeft == null ? '…' : formatAbout(p.secondsLeft), 'over all steps']
        : ['Time', formatSeconds(run.log.at(-1)?.at ?? 0), 'until it stopped'],
    report
      ? ['Memory', formatBytes(report.peakBytes), 'at most, for tiles']
      : ['Phase', p ? PHASE_TITLES[p.phase] : '–', now],
    report
      ? ['Engine', report.engine === 'webgpu' ? 'WebGPU' : 'CPU', report.adapter]
      : ['Target', run.destination.kind === 'folder' ? 'Folder' : 'Downloads', run.destination.name],
  ];
  return <Costs items={items} />;
}

function Inputs({ report }: { report: NonNullable<RunState['report']> }) {
  return (
    <Section title="Inputs">
      <ul className="hashes">
        {report.inputs.map((input) => (
          <li key={`${input.id} ${input.file}`}>
            <span className="truncate">
              {input.id} <span className="faint">/ {input.file}</span>
            </span>
            <HashDigits hash={input.hash} length={16} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
