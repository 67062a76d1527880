import { type ComponentProps, useEffect, useState } from 'react';
import { counted, formatBytes, formatCount, formatCounted, formatSeconds } from '../../formats/quantity';
import type { InterruptedRun } from '../../reports/merge';
import { reloadToUpdate } from '../offline/app-shell';
import { restartStep, whyNoTool } from '../state/job';
import { resumable } from '../state/past-runs';
import { discardRun, resumeRun, takeOverMerge, whyNotYet } from '../state/run';
import { currentRun, interruptedRuns } from '../state/runs';
import { dismissNotice, type Notice, neverMind } from '../state/studio';
import { JOB_WORDS } from '../state/tabs';
import { useStudio, useStudioState } from '../studio-context';
import { Button, CloseIcon } from './Button';
import { HubWaiting, Message } from './Message';

/** How long a note stays that asks for nothing, in milliseconds. */
const NOTE_MS = 12_000;

/** A note that disappears after a while, not while the pointer is on it; an error stays until dismissed or resolved. */
function OneNotice({ notice }: { notice: Notice }) {
  const studio = useStudio();
  const [held, setHeld] = useState(false);
  const { id, tone, message, hint } = notice;
  useEffect(() => {
    if (tone !== 'note' || held) return;
    const timer = setTimeout(() => dismissNotice(studio, id), NOTE_MS);
    return () => clearTimeout(timer);
  }, [studio, id, tone, held]);
  return (
    <li className="relative" onPointerEnter={() => setHeld(true)} onPointerLeave={() => setHeld(false)}>
      <Message tone={tone} title={message} hint={hint} live />
      <Button
        icon={CloseIcon}
        variant="quiet"
        aria-label="Dismiss"
        onClick={() => dismissNotice(studio, id)}
      />
    </li>
  );
}

/** A job without a report for long: its progress, and a button to go on. */
function StandingStill() {
  const studio = useStudio();
  const job = useStudioState((s) => (s.job?.stalled ? s.job : null));
  if (!job?.stalled) return null;
  const { progress, stalled, kind } = job;
  const where = [progress?.phase, progress?.item].filter(Boolean).join(', ');
  return (
    <Standing
      tone="warning"
      title={`${JOB_WORDS[kind].title}: nothing new for ${formatSeconds(stalled.seconds)}${
        where === '' ? '' : ` (${where})`
      }; the engine ${stalled.answers ? 'answers, so the step may only be slow' : 'does not answer'}.`}
    >
      <Button onClick={() => void restartStep(studio)}>Restart this step</Button>
    </Standing>
  );
}

/** A recipe that a link asks a hub for. */
function OpeningLink() {
  const studio = useStudio();
  const link = useStudioState((s) => s.link);
  if (link === null) return null;
  return (
    <Standing tone="note" title={`Opening the recipe of ${link}…`}>
      <Button onClick={() => neverMind(studio, 'link')}>Cancel</Button>
    </Standing>
  );
}

/** A notice that stays until its state is over. Children: buttons. */
function Standing({
  children,
  ...message
}: Pick<ComponentProps<typeof Message>, 'tone' | 'title' | 'hint' | 'children'>) {
  return (
    <li>
      <Message {...message} actions={children} live />
    </li>
  );
}

/** Notices without a place of their own on the page. */
export function Notices() {
  const notices = useStudioState((s) => s.notices);
  return (
    <aside className="notices" aria-label="Notices">
      <ul className="stack">
        <StandingStill />
        <OpeningLink />
        <HubWaiting as="li" />
        <RunNotices />
        <UpdateNotice />
        {notices.map((notice) => (
          <OneNotice key={notice.id} notice={notice} />
        ))}
      </ul>
    </aside>
  );
}

/** A new version is there. It is never taken while something runs. */
function UpdateNotice() {
  const update = useStudioState((s) => s.update);
  const why = useStudioState(whyNoTool);
  if (!update) return null;
  return (
    <Standing
      tone="note"
      title="A new version of Amalgam is ready"
      hint="The recipe is kept; what was measured and written in this tab is not."
    >
      <Button why={why} onClick={reloadToUpdate}>
        Reload to update
      </Button>
    </Standing>
  );
}

/** Merges that are not this tab's: at work in another one, or cut off and waiting to go on. */
function RunNotices() {
  const elsewhere = useStudioState((s) => s.elsewhere);
  const interrupted = useStudioState(interruptedRuns);
  const busy = useStudioState((s) => s.job?.kind === 'merge');
  // the bar offers to resume the merge paused here
  const paused = useStudioState((s) => (currentRun(s)?.paused ? resumable(s) : undefined));
  if (elsewhere !== null) return <Elsewhere />;
  if (busy) return null;
  return (
    <>
      {interrupted
        .filter((run) => run !== paused)
        .map((run) => (
          <Interrupted key={`${run.destination.kind} ${run.destination.name}`} run={run} />
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
      : `${formatCount(run.tensorsDone)} of ${formatCounted(run.tensors, 'tensor')}, ${formatBytes(run.bytesDone)} written.`;
  return (
    <Standing
      tone="note"
      title={
        <>
          The merge <span className="mono">{name}</span> is not finished
        </>
      }
      hint={kind === 'folder' ? `${far} Whole files in the folder are kept.` : far}
    >
      <Button variant="primary" why={why} onClick={() => void resumeRun(studio, run)}>
        Resume
      </Button>
      <Button onClick={() => void discardRun(studio, run)}>Discard</Button>
    </Standing>
  );
}

function Elsewhere() {
  const studio = useStudio();
  const elsewhere = useStudioState((s) => s.elsewhere);
  const progress = elsewhere?.progress;
  const far =
    progress && progress.tensors > 0
      ? `${progress.tensorsDone} of ${counted(progress.tensors, 'tensor')}. `
      : '';
  return (
    <Standing
      tone="note"
      title={
        <>
          Another tab is merging <span className="mono">{elsewhere?.name}</span>
        </>
      }
      hint={`${far}This tab can plan and show results; it can merge when that one is done.`}
    >
      <Button onClick={() => void takeOverMerge(studio)}>Take over</Button>
    </Standing>
  );
}
