import { useEffect, useRef, useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatRate,
  formatSeconds,
  formatWeightFiles,
} from '../../formats/quantity';
import type { InterruptedRun } from '../../reports/merge';
import { ActionButton, Button, LinkButton } from '../parts/Button';
import { Progress } from '../parts/ToolBar';
import { ACTIONS, keysText } from '../state/actions';
import { bytesToKeep, mergeGate } from '../state/merge-gate';
import { resumable } from '../state/past-runs';
import { isRecipeOf } from '../state/recipe-identity';
import { resumeRun } from '../state/run';
import { currentRun, type RunState, runShare, runWords, spokenWords } from '../state/runs';
import { type StudioState, setView, showTab } from '../state/studio';
import type { Tab } from '../state/tabs';
import { useStudio, useStudioState } from '../studio-context';

/** The one primary button, *Find the best* beside it, and always one line of status. */
export function RunBar() {
  const studio = useStudio();
  const run = useStudioState(currentRun);
  const paused = useStudioState((s) => (currentRun(s)?.paused ? resumable(s) : undefined));
  const stopped = useStudioState((s) => s.engine.status === 'failed');
  const active = run?.status === 'running' ? run : null;
  // full and green for the recipe that was merged, and for no other
  const done = useStudioState(
    (s) => currentRun(s)?.status === 'done' && isRecipeOf(currentRun(s)!.recipe, s.recipe, s.models),
  );
  const why = useStudioState(ACTIONS.merge.whyNot);
  return (
    <footer className="stack runbar">
      <div className="row tight">
        <ActionButton
          of={ACTIONS.merge}
          variant="primary"
          className="merge-button grow"
          tip={`${keysText(ACTIONS.merge)} from anywhere`}
          aria-keyshortcuts="Control+Enter Meta+Enter"
        >
          Merge
        </ActionButton>
        {active ? (
          <>
            <ActionButton of={ACTIONS.pause} tip="Stop here and continue later: what is written is kept" />
            <ActionButton of={ACTIONS.cancel} />
          </>
        ) : paused ? (
          <Button why={why} onClick={() => void resumeRun(studio, paused)}>
            Continue
          </Button>
        ) : stopped ? (
          <Button onClick={() => location.reload()}>Reload</Button>
        ) : (
          <ActionButton
            of={ACTIONS.findTheBest}
            tip="Methods are tried in memory, each at its own λ, and the best becomes the recipe"
          />
        )}
      </div>
      <div className="stack run-status">
        <Progress
          label={active ? 'Merge' : null}
          share={active?.progress ? runShare(active.progress) : !active && done ? 1 : 0}
          words={active?.progress ? spokenWords(active.progress) : 'starting'}
          done={done}
        />
        {active ? <Working run={active} /> : <Resting />}
      </div>
    </footer>
  );
}

/** Opens timings, log and report of the run. */
function DetailsLink() {
  const studio = useStudio();
  return <LinkButton onClick={() => setView(studio, { dialog: 'report' })}>Details</LinkButton>;
}

function stopping(run: RunState): string {
  return run.paused ? 'Pausing…' : 'Canceling…';
}

function Working({ run }: { run: RunState }) {
  const p = run.progress;
  const canceling = useStudioState((s) => s.job?.canceling);
  if (canceling || !p) return <p className="row small run-line">{canceling ? stopping(run) : 'Starting…'}</p>;
  const { step, counted } = p;
  return (
    <>
      <p className="row small run-line">
        <span className="run-words">{runWords(p)}</span>
        {counted || p.bytesPerSecond === 0 ? null : <span>{formatRate(p.bytesPerSecond)}</span>}
        <DetailsLink />
      </p>
      <p className="row small quiet run-line">
        <span className="truncate">
          {step ? `${step.name} (${step.at + 1} of ${step.of}) · ` : ''}
          {counted
            ? `${formatCount(counted.done)} of ${formatCount(counted.total)} ${counted.unit}`
            : p.tensors > 0
              ? `${formatCount(p.tensorsDone)} of ${formatCounted(p.tensors, 'tensor')}`
              : p.item}
        </span>
      </p>
    </>
  );
}

/** Not running: the outcome of the last run, else what Merge would do, else why it cannot. */
function Resting() {
  const studio = useStudio();
  const line = useStudioState(useShallow(restingLine));
  return (
    <>
      <p className="row wrap small run-line">
        <span className="ink toned" data-tone={line.tone === 'plain' ? undefined : line.tone}>
          {line.text}
        </span>
        {line.tab ? (
          <LinkButton onClick={() => line.tab && showTab(studio, line.tab)}>Show {line.tab}</LinkButton>
        ) : null}
        {line.of ? <DetailsLink /> : null}
      </p>
      {line.more ? <p className="small quiet run-more">{line.more}</p> : null}
    </>
  );
}

interface RestingLine {
  tone: 'plain' | 'good' | 'bad';
  text: string;
  more?: string | undefined;
  tab?: Tab | undefined;
  /** It is about a run, which has details. */
  of?: true;
}

function restingLine(state: StudioState): RestingLine {
  const { plan } = state;
  const run = currentRun(state);
  const gate = mergeGate(state);
  if (run && run.status !== 'running' && isRecipeOf(run.recipe, state.recipe, state.models))
    return { ...outcome(run, resumable(state)), of: true };
  if (!gate.open) {
    const { tone, why: text, remedy: more, tab } = gate;
    return { tone: tone === 'fix' ? 'bad' : 'plain', text, more, tab };
  }
  // the plan of the recipe before may have had errors, and no figures
  if (!plan.report?.clean) return { tone: 'plain', text: 'Planning…' };
  const { tensors, bytesToDownload, bytesToRead, bytesToWrite, outputFiles, peakBytes } = plan.report;
  const kept = bytesToKeep(plan.report, state.output);
  const passing = bytesToDownload - kept;
  const memoryBytes = state.engine.info?.storage.memoryBytes;
  return {
    tone: 'plain',
    text: `Ready: ${formatCounted(tensors.length, 'tensor')}, ${formatBytes(bytesToWrite)} to write`,
    more: [
      kept > 0 ? `${formatBytes(kept)} to download` : 'nothing to download',
      ...(passing > 0 ? [`${formatBytes(passing)} pass by, not kept`] : []),
      `${formatBytes(bytesToRead)} to read`,
      formatWeightFiles(outputFiles),
      `${formatBytes(peakBytes)} memory`,
      ...(memoryBytes === undefined
        ? []
        : [
            `This browser keeps no files: up to ${formatBytes(memoryBytes)} stay in memory until the tab is closed`,
          ]),
    ].join(' · '),
  };
}

function outcome(run: RunState, kept: InterruptedRun | undefined): RestingLine {
  if (run.status === 'failed') {
    return { tone: 'bad', text: run.error?.message ?? 'The merge failed.' };
  }
  if (run.status === 'canceled') {
    const said = run.paused ? 'Paused' : 'Canceled';
    if (!kept) return { tone: 'plain', text: `${said}. Nothing was kept.` };
    const { tensorsDone, bytesDone, bytes } = kept;
    const tensors = kept.tensors || run.planned.length;
    // cut off before the first tensor: downloads and calibration results stay
    if (tensorsDone === 0)
      return { tone: 'plain', text: `${said} before the first tensor. What was fetched is kept.` };
    return {
      tone: 'plain',
      text: run.paused
        ? `${said}: ${formatBytes(bytesDone)} of ${formatBytes(bytes)} written and kept`
        : `${said}. It can be resumed.`,
      more: `${formatCount(tensorsDone)} of ${formatCounted(tensors, 'tensor')} done; whole files are kept`,
    };
  }
  const { report, destination } = run;
  const written = report?.shards ?? [];
  const bytes = written.reduce((sum, s) => sum + s.bytes, 0);
  return {
    tone: 'good',
    text: `Merged in ${formatSeconds(report?.seconds ?? 0)}`,
    more: `${formatBytes(bytes)} in ${formatWeightFiles(written.map(({ file }) => file))} · ${
      destination.kind === 'folder' ? `saved to ${destination.folder}/${destination.name}` : destination.name
    }`,
  };
}

/** How often a running merge is spoken, in milliseconds. */
const EVERY_MS = 5000;

/** Announces the run to screen readers, in every place: its beginning and end at once, progress every five seconds. */
export function Announcer() {
  const { store } = useStudio();
  const [text, setText] = useState('');
  const last = useRef({ at: 0, status: '' });
  useEffect(
    () =>
      store.subscribe((state, before) => {
        const { job } = state;
        const run = currentRun(state);
        if (!run || (run === currentRun(before) && job?.canceling === before.job?.canceling)) return;
        const now = Date.now();
        const status = run.status === 'running' && job?.canceling ? 'canceling' : run.status;
        const changed = status !== last.current.status;
        if (!changed && now - last.current.at < EVERY_MS) return;
        last.current = { at: now, status };
        setText(status === 'canceling' ? 'Canceling the merge.' : spoken(run));
      }),
    [store],
  );
  return (
    <span className="visually-hidden announcer" role="status" aria-live="polite">
      {text}
    </span>
  );
}

function spoken(run: RunState): string {
  if (run.status === 'done') return 'Merge finished.';
  if (run.status === 'failed') return `Merge failed. ${run.error?.message ?? ''}`;
  if (run.status === 'canceled') return run.paused ? 'Merge paused.' : 'Merge canceled.';
  return run.progress ? `Merge: ${spokenWords(run.progress)}.` : 'Merge started.';
}
