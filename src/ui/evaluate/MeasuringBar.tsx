import { formatClock, formatCount, formatCounted } from '../format/quantity';
import { Button } from '../parts/Button';
import { cancelMeasuring } from '../state/evaluation';
import type { EvaluationJob } from '../state/evaluation-facts';
import { jobProgress } from '../state/evaluation-table';
import { useFacts, useStudio } from '../studio-context';
import { isSweep } from './density-sweep';

/** What is being measured, how fast, how long it will take, and the way to stop it. */
export function MeasuringBar({ of }: { of: 'table' | 'sweep' }) {
  const job = useFacts(({ evaluation: e }) => (isSweep(e) === (of === 'sweep') ? e.job : null));
  return (
    <>
      {job ? <Bar job={job} /> : null}
      {of === 'table' ? <Spoken /> : null}
    </>
  );
}

/** For those who hear the page: what is at work, and that it is over. Single numbers would be too much. */
function Spoken() {
  const measured = useFacts((s) => s.evaluation.outcomes.size > 0);
  const text = useFacts(({ evaluation: { job } }) => (job ? groupWords(job) : undefined));
  return (
    <span className="visually-hidden" role="status">
      {text !== undefined
        ? `Measuring ${text}.`
        : measured
          ? 'Not measuring. The table has the numbers.'
          : ''}
    </span>
  );
}

function Bar({ job }: { job: EvaluationJob }) {
  const studio = useStudio();
  const { share, secondsLeft } = jobProgress(job);
  return (
    <div className="measuring">
      <div
        className="progress"
        role="progressbar"
        aria-label="Measuring"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <div className="progress-fill" style={{ width: `${share * 100}%` }} />
      </div>
      <p className="small measuring-line">
        <span className="truncate">{job.cancelling ? 'Cancelling…' : groupWords(job)}</span>
        {job.groups.length > 1 ? (
          <span className="quiet">
            {formatCount(job.at + 1)} of {formatCount(job.groups.length)}
          </span>
        ) : null}
        <span className="quiet">
          {job.progress?.stage === 'downloading'
            ? 'downloading'
            : job.progress && job.progress.rate > 0
              ? `${formatCount(job.progress.rate)} tokens/s`
              : 'opening'}
        </span>
        <span className="spacer" />
        <span className="quiet">{secondsLeft === null ? '' : `${formatClock(secondsLeft)} left`}</span>
      </p>
      <p className="small faint measuring-line">
        Models side by side finish together. Stopping keeps every number in the table, not those at work.
      </p>
      <Button why={job.cancelling ? 'Cancelling…' : null} onClick={() => void cancelMeasuring(studio)}>
        Stop measuring
      </Button>
    </div>
  );
}

/** `base on common`, `12 models side by side on 4 texts`. */
function groupWords({ groups, at }: EvaluationJob): string {
  const group = groups[at] ?? [];
  const rows = new Set(group.map((c) => c.rowLabel));
  const texts = new Set(group.map((c) => c.textName));
  const who = rows.size === 1 ? [...rows][0] : `${formatCounted(rows.size, 'model')} side by side`;
  return `${who} on ${texts.size === 1 ? [...texts][0] : formatCounted(texts.size, 'text')}`;
}
