import { formatAbout, formatCount } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { groupWords } from '../state/evaluation-table';
import { cancelJob } from '../state/job';
import type { Job } from '../state/job-state';
import { useStudio, useStudioState } from '../studio-context';

/** What is being measured, how fast, how long it will take, and the way to stop it. */
export function MeasuringBar() {
  const job = useStudioState((s) => (s.job?.kind === 'evaluation' ? s.job : null));
  return (
    <>
      {job ? <Bar job={job} /> : null}
      <Spoken />
    </>
  );
}

/** For those who hear the page: what is at work, and that it is over. Single numbers would be too much. */
function Spoken() {
  const measured = useStudioState((s) => s.evaluation.outcomes.size > 0);
  const text = useStudioState(({ evaluation: { work } }) => (work ? groupWords(work) : undefined));
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

function Bar({ job: { progress: p, cancelling } }: { job: Job }) {
  const studio = useStudio();
  const share = p?.share ?? 0;
  const work = useStudioState((s) => s.evaluation.work);
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
        <span className="truncate">{cancelling ? 'Canceling…' : p?.item}</span>
        {work && work.groups.length > 1 ? (
          <span className="quiet">
            {formatCount(work.at + 1)} of {formatCount(work.groups.length)}
          </span>
        ) : null}
        <span className="quiet">
          {p?.phase === 'downloading'
            ? 'downloading'
            : p?.rate
              ? `${formatCount(p.rate.perSecond)} tokens/s`
              : 'opening'}
        </span>
        <span className="spacer" />
        <span className="quiet">{p?.secondsLeft == null ? '' : `${formatAbout(p.secondsLeft)} left`}</span>
      </p>
      <p className="small faint measuring-line">
        Models measured side by side finish together. Stopping keeps every number in the table, but not those
        in progress.
      </p>
      <Button why={cancelling ? 'Canceling…' : null} onClick={() => void cancelJob(studio)}>
        Stop measuring
      </Button>
    </div>
  );
}
