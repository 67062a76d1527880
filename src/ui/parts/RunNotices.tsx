import { formatBytes, formatCount } from '../../formats/quantity';
import type { InterruptedRun } from '../../reports/merge';
import { discardRun, resumeRun, whyNotYet } from '../state/interrupted-merges';
import { takeOverMerge } from '../state/other-tabs';
import { keptOf } from '../state/past-runs';
import { currentRun, interruptedRuns } from '../state/runs';
import { useStudio, useStudioState } from '../studio-context';
import { Button } from './Button';
import { Message } from './Message';

/** Merges that are not this tab's: at work in another one, or cut off and waiting to go on. */
export function RunNotices() {
  const elsewhere = useStudioState((s) => s.elsewhere);
  const interrupted = useStudioState(interruptedRuns);
  const busy = useStudioState((s) => s.job?.kind === 'merge');
  // the bar offers to go on with what was paused here
  const paused = useStudioState((s) => (currentRun(s)?.paused ? keptOf(s) : undefined));
  if (elsewhere !== null) return <Elsewhere />;
  if (busy) return null;
  return (
    <>
      {interrupted
        .filter((run) => run !== paused)
        .map((run) => (
          <li key={`${run.destination.kind} ${run.destination.name}`}>
            <Interrupted run={run} />
          </li>
        ))}
    </>
  );
}

function Interrupted({ run }: { run: InterruptedRun }) {
  const studio = useStudio();
  const why = useStudioState((s) => whyNotYet(s, run));
  const { name, kind } = run.destination;
  const far =
    run.tensors === 0
      ? 'It was cut off before the first tensor.'
      : `${formatCount(run.tensorsDone)} of ${formatCount(run.tensors)} tensors, ${formatBytes(run.bytesDone)} written.`;
  return (
    <Message
      tone="note"
      title={
        <>
          The merge <span className="mono">{name}</span> is not finished
        </>
      }
      hint={kind === 'folder' ? `${far} Whole files in the folder are kept.` : far}
      live
    >
      <div className="row message-actions">
        <Button variant="primary" why={why} onClick={() => void resumeRun(studio, run)}>
          Resume
        </Button>
        <Button onClick={() => void discardRun(studio, run)}>Discard</Button>
      </div>
    </Message>
  );
}

function Elsewhere() {
  const studio = useStudio();
  const elsewhere = useStudioState((s) => s.elsewhere);
  const progress = elsewhere?.progress;
  const far =
    progress && progress.tensors > 0 ? `${progress.tensorsDone} of ${progress.tensors} tensors. ` : '';
  return (
    <li>
      <Message
        tone="note"
        title={
          <>
            Another tab is merging <span className="mono">{elsewhere?.name}</span>
          </>
        }
        hint={`${far}This tab can plan and show results; it can merge when that one is done.`}
        live
      >
        <div className="row message-actions">
          <Button onClick={() => void takeOverMerge(studio)}>Take over</Button>
        </div>
      </Message>
    </li>
  );
}
