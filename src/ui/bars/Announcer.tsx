import { useEffect, useRef, useState } from 'react';
import { spokenWords } from '../state/run-log';
import type { RunState } from '../state/runs';
import { currentRun } from '../state/runs';
import { useStudio } from '../studio-context';

/** How often a running merge is spoken, in milliseconds. */
const EVERY_MS = 5000;

/** Says aloud how the run goes: its beginning and end at once, progress every five seconds. */
export function Announcer() {
  const { store } = useStudio();
  const [text, setText] = useState('');
  const last = useRef({ at: 0, status: '' });
  useEffect(
    () =>
      store.subscribe((state, before) => {
        const { job } = state;
        const run = currentRun(state);
        if (!run || (run === currentRun(before) && job?.cancelling === before.job?.cancelling)) return;
        const now = Date.now();
        const status = run.status === 'running' && job?.cancelling ? 'cancelling' : run.status;
        const changed = status !== last.current.status;
        if (!changed && now - last.current.at < EVERY_MS) return;
        last.current = { at: now, status };
        setText(status === 'cancelling' ? 'Canceling the merge.' : spoken(run));
      }),
    [store],
  );
  return (
    <span className="visually-hidden" role="status" aria-live="polite">
      {text}
    </span>
  );
}

function spoken(run: RunState): string {
  if (run.status === 'done') return 'Merge finished.';
  if (run.status === 'failed') return `Merge failed. ${run.error?.message ?? ''}`;
  if (run.status === 'cancelled') return run.paused ? 'Merge paused by you.' : 'Merge canceled.';
  return run.progress ? `Merge: ${spokenWords(run.progress)}.` : 'Merge started.';
}
