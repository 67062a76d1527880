import { formatClock, formatCount } from '../format/quantity';
import { Button } from '../parts/Button';
import { cancelMeasuring } from '../state/evaluation';
import { jobProgress } from '../state/evaluation-table';
import { useFacts, useStudio } from '../studio-context';

/** What is being measured, how fast, how long it will take, and the way to stop it. */
export function MeasuringBar() {
  const studio = useStudio();
  const job = useFacts((s) => s.evaluation.job);
  if (!job) return null;
  const { share, secondsLeft } = jobProgress(job);
  const cell = job.cells[job.at];
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
        <span className="truncate">
          {job.cancelling ? 'Cancelling…' : `${cell?.rowLabel ?? ''} on ${cell?.textName ?? ''}`}
        </span>
        <span className="quiet">
          {formatCount(job.at + 1)} of {formatCount(job.cells.length)}
        </span>
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
      <Button why={job.cancelling ? 'Cancelling…' : null} onClick={() => void cancelMeasuring(studio)}>
        Stop measuring
      </Button>
    </div>
  );
}
