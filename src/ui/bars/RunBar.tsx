import { useCallback, useEffect, useRef, useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import {
  formatBytes,
  formatCount,
  formatCounted,
  formatRate,
  formatSeconds,
  formatWeightFiles,
  NBSP,
} from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import type { InterruptedRun } from '../../reports/merge';
import { type TimesSpent, timeShares } from '../charts/time-shares';
import { Button } from '../parts/Button';
import { HubWaiting } from '../parts/HubWaiting';
import { LinkButton } from '../parts/LinkButton';
import { resumeRun } from '../state/interrupted-merges';
import { restartStep } from '../state/job';
import { mergeGate } from '../state/merge-gate';
import { resumable, sameMerge } from '../state/past-runs';
import { isRecipeOf } from '../state/recipe-identity';
import { cancelMerge, continueRecommended, pauseMerge, startMerge } from '../state/run';
import { currentRun, type RunState, runShare, runWords, spokenWords } from '../state/runs';
import { notifyError, type Studio, showTab } from '../state/studio';
import type { StudioState } from '../state/studio-state';
import { JOB_WORDS, type Tab } from '../state/tabs';
import { useStudio, useStudioState } from '../studio-context';

const MERGE_KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ Enter' : 'Ctrl+Enter';

/** Ctrl or Cmd with Enter, where nothing else wants it: a prompt does, and a dialog comes first. */
function isMergeKey(event: KeyboardEvent): boolean {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return false;
  const { target } = event;
  return !(target instanceof Element && target.closest('textarea, [role="dialog"]'));
}

/** The one primary button, and always one line of status. */
export function RunBar() {
  const studio = useStudio();
  const gate = useStudioState(useShallow(mergeGate));
  const run = useStudioState(currentRun);
  const paused = useStudioState((s) => (currentRun(s)?.paused ? resumable(s) : undefined));
  const stopped = useStudioState((s) => s.engine.status === 'failed');
  const job = useStudioState((s) => (s.job?.kind === 'merge' ? s.job : null));
  const active = run?.status === 'running';
  // full and green for the recipe that was merged, and for no other
  const done = useStudioState(
    (s) => currentRun(s)?.status === 'done' && isRecipeOf(currentRun(s)!.recipe, s.recipe, s.models),
  );
  // the finished run that Merge would only repeat, until the user confirms
  const [same, setSame] = useState<RunState | null>(null);
  const press = useCallback(async () => {
    try {
      const found = mergeGate(studio.store.getState()).open ? await sameMerge(studio) : null;
      setSame(found);
      if (!found) await startMerge(studio);
    } catch (thrown) {
      notifyError(studio, thrown);
    }
  }, [studio]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isMergeKey(event)) return;
      event.preventDefault();
      void press();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [press]);
  return (
    <footer className="runbar">
      <Button
        variant="primary"
        className="merge-button"
        why={gate.open ? null : gate.why}
        tip={`${MERGE_KEYS} from anywhere`}
        aria-keyshortcuts="Control+Enter Meta+Enter"
        onClick={() => void press()}
      >
        Merge
      </Button>
      <div className="run-status">
        <Track run={active ? run : null} done={done} />
        {active && run ? (
          <Working run={run} />
        ) : done && same !== null && same === run ? (
          <Merged run={run} onDone={() => setSame(null)} />
        ) : (
          <Resting />
        )}
        <HubWaiting />
        <StandingStill />
      </div>
      {active && run ? (
        <>
          <Button
            tip="Stop here and continue later: what is written is kept"
            why={job?.canceling ? stopping(run) : null}
            onClick={() => void pauseMerge(studio)}
          >
            Pause
          </Button>
          <Button why={job?.canceling ? stopping(run) : null} onClick={() => void cancelMerge(studio)}>
            Cancel
          </Button>
        </>
      ) : run?.recommended && run.paused && run.status === 'canceled' ? (
        <Button why={gate.open ? null : gate.why} onClick={() => void continueRecommended(studio)}>
          Continue
        </Button>
      ) : paused && run?.status === 'canceled' ? (
        <Button why={gate.open ? null : gate.why} onClick={() => void resumeRun(studio, paused)}>
          Continue
        </Button>
      ) : null}
      {stopped ? <Button onClick={() => location.reload()}>Reload</Button> : null}
      <Announcer />
    </footer>
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
    <p className="small run-line" role="status" data-tone="bad">
      <span className="truncate">
        {JOB_WORDS[kind].title}: nothing new for {formatSeconds(stalled.seconds)}
        {where === '' ? '' : ` (${where})`}; the engine{' '}
        {stalled.answers ? 'answers, so the step may only be slow' : 'does not answer'}.
      </span>
      <LinkButton onClick={() => void restartStep(studio)}>Restart this step</LinkButton>
    </p>
  );
}

/** Merge was pressed for a recipe that is merged: the files are there, and another merge would write the same ones. */
function Merged({ run, onDone }: { run: RunState; onDone(): void }) {
  const studio = useStudio();
  const act = (next: () => void) => () => {
    onDone();
    next();
  };
  return (
    <p className="run-line" role="status">
      <span className="run-item truncate">
        This recipe is merged already, as <span className="mono">{run.destination.name}</span>.
      </span>
      <LinkButton onClick={act(() => showTab(studio, 'output'))}>Show its files</LinkButton>
      <LinkButton onClick={act(() => void startMerge(studio))}>Merge again</LinkButton>
    </p>
  );
}

function stopping(run: RunState): string {
  return run.paused ? 'Pausing…' : 'Canceling…';
}

function Track({ run, done }: { run: RunState | null; done: boolean }) {
  const progress = run?.progress;
  const share = progress ? runShare(progress) : done ? 1 : 0;
  return (
    <div
      className="bar progress"
      {...(run
        ? {
            role: 'progressbar',
            'aria-label': 'Merge',
            'aria-valuemin': 0,
            'aria-valuemax': 100,
            'aria-valuenow': Math.round(share * 100),
            'aria-valuetext': progress ? spokenWords(progress) : 'starting',
          }
        : {})}
    >
      <div className="progress-fill" data-done={done || undefined} style={{ width: `${share * 100}%` }} />
    </div>
  );
}

function Working({ run }: { run: RunState }) {
  const p = run.progress;
  const canceling = useStudioState((s) => s.job?.canceling);
  if (canceling) return <p className="run-line">{stopping(run)}</p>;
  if (!p) return <p className="run-line">Starting…</p>;
  return (
    <p className="run-line">
      {p.step ? (
        <span className="run-item truncate">
          {p.step.name}{' '}
          <span className="faint">
            ({p.step.at + 1} of {p.step.of})
          </span>
        </span>
      ) : null}
      <span className="run-words">{runWords(p)}</span>
      <span className="run-item run-more truncate">{p.item}</span>
      <span className="run-more">
        {p.counted
          ? `${formatCount(p.counted.done)} of ${formatCount(p.counted.total)} ${p.counted.unit}`
          : p.tensors > 0
            ? `${formatCount(p.tensorsDone)} of ${formatCounted(p.tensors, 'tensor')}`
            : ''}
      </span>
      {p.counted ? null : (
        <>
          <span className="run-extra">
            {formatBytes(p.bytesDone)} of {formatBytes(p.bytes)}
          </span>
          <span className="run-more">{formatRate(p.bytesPerSecond)}</span>
        </>
      )}
      <span className="run-extra">{sharesText(p)}</span>
    </p>
  );
}

/** `read 31 · upload 12 · compute 22 · write 35 %`, empty while nothing was measured. */
function sharesText(times: TimesSpent): string {
  const shares = timeShares(times).filter((s) => s.share >= 0.005);
  return shares.length === 0
    ? ''
    : `${shares.map((s) => `${s.stage} ${Math.round(s.share * 100)}`).join(' · ')}${NBSP}%`;
}

/** Not running: the outcome of the last run, else what Merge would do, else why it cannot. */
function Resting() {
  const studio = useStudio();
  const line = useStudioState(useShallow(restingLine));
  return (
    <p className="run-line" data-tone={line.tone}>
      <span className="run-item truncate">{line.text}</span>
      {line.more ? <span className="run-extra truncate">{line.more}</span> : null}
      {line.better ? <LinkButton onClick={() => void isItBetter(studio)}>Is it better?</LinkButton> : null}
      {line.tab ? (
        <LinkButton onClick={() => line.tab && showTab(studio, line.tab)}>{line.link}</LinkButton>
      ) : null}
    </p>
  );
}

/** Base, contributors and merge answer the same prompt and are measured. */
async function isItBetter(studio: Studio): Promise<void> {
  try {
    const { tryMerge } = await import('../state/generation');
    await tryMerge(studio);
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

interface RestingLine {
  tone: 'plain' | 'good' | 'bad';
  text: string;
  more?: string;
  tab?: Tab;
  link?: string;
  /** The merge can be tried. */
  better?: true;
}

function restingLine(state: StudioState): RestingLine {
  const { plan } = state;
  const run = currentRun(state);
  const gate = mergeGate(state);
  const isOf = (recipe: Recipe) => isRecipeOf(recipe, state.recipe, state.models);
  // until it has ended well, the recommended merge is one of the recipe that it was asked for with
  const asked = run?.status === 'done' ? undefined : run?.asked;
  if (run && run.status !== 'running' && (isOf(run.recipe) || (asked && isOf(asked))))
    return outcome(run, resumable(state));
  if (!gate.open) {
    return {
      tone: gate.tone === 'fix' ? 'bad' : 'plain',
      text: gate.why,
      ...(gate.remedy ? { more: gate.remedy } : {}),
      ...(gate.tab ? { tab: gate.tab, link: `Show ${gate.tab}` } : {}),
    };
  }
  // the plan of the recipe before may have had errors, and no figures
  if (!plan.report?.clean) return { tone: 'plain', text: 'Planning…' };
  const { tensors, bytesToDownload, bytesToRead, bytesToWrite, outputFiles, peakBytes } = plan.report;
  const memoryBytes = state.engine.info?.storage.memoryBytes;
  return {
    tone: 'plain',
    text: [
      `Ready: ${formatCounted(tensors.length, 'tensor')}, ${formatBytes(bytesToWrite)} to write`,
      ...(memoryBytes === undefined
        ? []
        : [
            `This browser keeps no files: up to ${formatBytes(memoryBytes)} stay in memory until the tab is closed`,
          ]),
    ].join('. '),
    more: [
      bytesToDownload > 0 ? `${formatBytes(bytesToDownload)} to download` : 'nothing to download',
      `${formatBytes(bytesToRead)} to read`,
      formatWeightFiles(outputFiles),
      `${formatBytes(peakBytes)} memory`,
    ].join(' · '),
  };
}

function outcome(run: RunState, kept: InterruptedRun | undefined): RestingLine {
  if (run.status === 'failed') {
    return { tone: 'bad', text: run.error?.message ?? 'The merge failed.', tab: 'run', link: 'Details' };
  }
  if (run.status === 'canceled') {
    const said = run.paused ? 'Paused' : 'Canceled';
    if (run.recommended) return { tone: 'plain', text: `${said}. What was computed is kept.` };
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
    better: true,
    tab: 'output',
    link: destination.kind === 'folder' ? 'Show files' : 'Get the files',
  };
}

/** How often a running merge is spoken, in milliseconds. */
const EVERY_MS = 5000;

/** Announces the run to screen readers: its beginning and end at once, progress every five seconds. */
function Announcer() {
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
    <span className="visually-hidden" role="status" aria-live="polite">
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
