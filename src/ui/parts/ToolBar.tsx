import { formatAbout, formatCount, formatRate } from '../format/quantity';
import { cancelJob, JOB_WORDS } from '../state/job';
import type { Job, JobKind } from '../state/job-facts';
import { useFacts, useStudio } from '../studio-context';
import { Button } from './Button';

const STAGES: Readonly<Record<string, string>> = {
  downloading: 'downloading',
  comparing: 'comparing',
  extracting: 'extracting',
  checking: 'checking the adapter',
  measuring: 'running the model',
  searching: 'searching',
  evaluating: 'measuring perplexity',
  hashing: 'hashing',
  writing: 'writing',
  sending: 'sending',
  committing: 'committing',
};

/** What a tool is at, how fast, how long it will take, and the way to stop it. Shown for these kinds of jobs only. */
export function ToolBar({ kinds }: { kinds: readonly JobKind[] }) {
  const job = useFacts((s) => s.job);
  const shown = job && kinds.includes(job.kind) ? job : null;
  return (
    <>
      {shown ? <Bar job={shown} /> : null}
      {/* single numbers would be too much to hear: that it works, and at what */}
      <span className="visually-hidden" role="status">
        {shown
          ? `${JOB_WORDS[shown.kind].title}: ${shown.progress ? STAGES[shown.progress.stage] : 'starting'}.`
          : ''}
      </span>
    </>
  );
}

function Bar({ job }: { job: Job }) {
  const studio = useStudio();
  const p = job.progress;
  const { title } = JOB_WORDS[job.kind];
  const share = p?.share ?? 0;
  return (
    <div className="tool-bar">
      <div
        className="progress"
        role="progressbar"
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <div className="progress-fill" style={{ width: `${share * 100}%` }} />
      </div>
      <p className="small tool-line">
        <span className="truncate tool-item">
          {job.cancelling ? 'Canceling…' : p ? p.item || STAGES[p.stage] : 'Starting…'}
        </span>
        {p && !job.cancelling ? (
          <>
            {p.item ? <span className="quiet">{STAGES[p.stage]}</span> : null}
            {p.counted ? (
              <span className="quiet">
                {formatCount(p.counted.done)} of {formatCount(p.counted.total)}
              </span>
            ) : null}
            {p.rate?.unit === 'bytes' ? <span className="quiet">{formatRate(p.rate.perSecond)}</span> : null}
            <span className="spacer" />
            <span className="quiet">
              {p.secondsLeft === null ? '' : `${formatAbout(p.secondsLeft)} left`}
            </span>
          </>
        ) : null}
      </p>
      <Button why={job.cancelling ? 'Canceling…' : null} onClick={() => void cancelJob(studio)}>
        Stop
      </Button>
    </div>
  );
}
