import type { ComponentProps, ReactNode } from 'react';
import { formatCount, formatLeft, formatRate, formatSeconds } from '../../formats/quantity';
import type { BackendKind } from '../../reports/backend';
import { cancelJob } from '../state/job';
import type { Job, JobProgress } from '../state/job-state';
import { JOB_WORDS, type JobKind, PHASE_WORDS } from '../state/tabs';
import { useStudio, useStudioState } from '../studio-context';
import { Button } from './Button';

interface ToolBarProps {
  kinds: readonly JobKind[];
}

/** Progress bar of a running job, with its rate, the time left and a way to stop it; shown for the kinds that are given. */
export function ToolBar({ kinds }: ToolBarProps) {
  const job = useStudioState((s) => s.job);
  const shown = job && kinds.some((kind) => kind === job.kind) ? job : null;
  return (
    <>
      {shown ? <Bar job={shown} /> : null}
      {/* single numbers would be too much to hear: that it works, and at what */}
      <span className="visually-hidden" role="status">
        {shown
          ? `${JOB_WORDS[shown.kind].title}: ${shown.progress ? stageWord(shown.progress) : 'starting'}.`
          : ''}
      </span>
    </>
  );
}

function stageWord({ phase }: JobProgress): string {
  return PHASE_WORDS[phase] ?? phase;
}

function Bar({ job }: { job: Job }) {
  const studio = useStudio();
  const p = job.progress;
  const { title } = JOB_WORDS[job.kind];
  const share = p?.share ?? 0;
  return (
    <div className="tool-bar panel">
      <Progress label={title} share={share} />
      <p className="row wrap small close">
        <span className="truncate mono">
          {job.canceling ? 'Canceling…' : p ? p.item || stageWord(p) : 'Starting…'}
        </span>
        {p && !job.canceling ? (
          <>
            {p.item ? <span className="quiet">{stageWord(p)}</span> : null}
            {p.counted ? (
              <span className="quiet">
                {formatCount(p.counted.done)} of {formatCount(p.counted.total)}
              </span>
            ) : null}
            {p.rate ? (
              <span className="quiet">
                {p.rate.unit === 'bytes'
                  ? formatRate(p.rate.perSecond)
                  : `${formatCount(Math.round(p.rate.perSecond))} tokens/s`}
              </span>
            ) : null}
            <span className="spacer" />
            <span className="quiet">{formatLeft(p.secondsLeft)}</span>
          </>
        ) : null}
      </p>
      <Button why={job.canceling ? 'Canceling…' : null} onClick={() => void cancelJob(studio)}>
        Stop
      </Button>
    </div>
  );
}

interface ProgressProps {
  /** Null: nothing is at work. */
  label: string | null;
  /** In [0, 1]. */
  share: number;
  /** The share in words. */
  words?: string;
  done?: boolean;
  className?: string;
}

/** A bar filled as far as a job is. */
export function Progress({ label, share, words, done, className = '' }: ProgressProps) {
  return (
    <span
      className={`bar progress ${className}`.trimEnd()}
      data-done={done || undefined}
      {...(label !== null && {
        role: 'progressbar',
        'aria-label': label,
        'aria-valuemin': 0,
        'aria-valuemax': 100,
        'aria-valuenow': Math.round(share * 100),
        'aria-valuetext': words,
      })}
    >
      <span className="bar-fill" style={{ width: `${share * 100}%` }} />
    </span>
  );
}

interface ToolHeadProps {
  title: string;
  report: { seconds: number; engine: BackendKind; adapter: string } | null;
  children?: ReactNode;
}

/** Heading of what a tool found: of what, and how long it took on what. */
export function ToolHead({ title, report, children }: ToolHeadProps) {
  return (
    <header className="tool-head stack tight">
      <h2 className="title">{title}</h2>
      {report ? (
        <p className="small quiet" role="status">
          {formatSeconds(report.seconds)} on {report.engine === 'webgpu' ? 'WebGPU' : 'CPU'} ({report.adapter}
          )
        </p>
      ) : null}
      {children}
    </header>
  );
}

interface JobButtonProps extends Omit<ComponentProps<typeof Button>, 'onClick'> {
  kind: JobKind;
  onClick(): void;
}

/** Begins a job, or stops it: one button, which keeps the focus. */
export function JobButton({ kind, why, tip, onClick, children, ...rest }: JobButtonProps) {
  const studio = useStudio();
  const job = useStudioState((s) => (s.job?.kind === kind ? s.job : null));
  return (
    <Button
      {...rest}
      tip={job ? 'What is done stays' : tip}
      why={job ? (job.canceling ? 'Canceling…' : null) : why}
      onClick={job ? () => void cancelJob(studio) : onClick}
    >
      {job ? 'Stop' : children}
    </Button>
  );
}
