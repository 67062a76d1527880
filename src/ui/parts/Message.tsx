import { Component, type ReactNode, useEffect, useState } from 'react';
import type { ErrorReport } from '../../errors';
import { type HubWait, waitWords } from '../../reports/push';
import type { ToolRun } from '../state/job-state';
import { currentRun } from '../state/runs';
import type { StudioState } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { Button, CheckIcon, CopyButton, ErrorIcon, InfoIcon, WarningIcon } from './Button';

interface MessageProps {
  tone: 'error' | 'warning' | 'note' | 'ok';
  title: ReactNode;
  /** Next step for the user. */
  hint?: ReactNode;
  children?: ReactNode;
  /** Buttons, in a row below. */
  actions?: ReactNode;
  live?: boolean;
}

const icons = { error: ErrorIcon, warning: WarningIcon, note: InfoIcon, ok: CheckIcon };

/** A message and its next step. */
export function Message({ tone, title, hint, children, actions, live }: MessageProps) {
  const Icon = icons[tone];
  return (
    <div
      className="message panel"
      data-tone={tone}
      role={live ? (tone === 'error' ? 'alert' : 'status') : undefined}
    >
      <Icon />
      <div className="message-title">{title}</div>
      {hint ? <div className="quiet">{hint}</div> : null}
      {children}
      {actions ? <div className="row wrap message-actions">{actions}</div> : null}
    </div>
  );
}

interface ProblemProps {
  className?: string;
  children: string | null | undefined | false;
}

/** Words for what is wrong with the fields above; nothing where nothing is. */
export function Problem({ className = '', children }: ProblemProps) {
  return children ? (
    <p className={`small tone-bad ${className}`} role="alert">
      {children}
    </p>
  ) : null;
}

// An error as text to paste into a bug report: what failed and on what, no secrets, nothing out of a file.

/** Longest message that is repeated: a parser's may quote the file it could not read. */
const MOST = 600;

/** Access tokens as the Hub writes them (`hf_…`, OAuth JWTs), and whatever an Authorization header holds. */
const SECRETS =
  /\bhf_\w+|\beyJ[\w-]+\.[\w-]+\.[\w-]*|\b(Bearer|Basic)\s+\S+|([?&](code|token|state)=)[^&\s"]+/gi;

export function errorDetails(error: ErrorReport, state: StudioState): string {
  const { info: engine, choice } = state.engine;
  const run = currentRun(state);
  const lines = [
    `${error.code}: ${error.message.slice(0, MOST)}`,
    error.hint,
    '',
    `Amalgam ${engine?.version ?? '(engine not started)'}`,
    ...(engine
      ? [
          `WebGPU: ${engine.webgpu.available ? engine.webgpu.adapter : (engine.webgpu.why ?? 'none')}`,
          `Engine: ${choice}, storage ${engine.storage.available ? 'there' : 'not there'}`,
        ]
      : []),
    `Browser: ${globalThis.navigator?.userAgent ?? 'none'}`,
    ...(run?.progress
      ? [`Stage: ${run.progress.phase}, ${run.progress.tensorsDone} of ${run.progress.tensors}`]
      : []),
    `Recipe: ${JSON.stringify(run?.recipe ?? state.recipe)}`,
  ];
  return lines
    .join('\n')
    .replace(SECRETS, (_, scheme?: string, key?: string) => `${key ?? scheme ?? ''}[removed]`);
}

/** An error with its remedy and everything a bug report needs, one click away. */
export function ErrorCard({ error }: { error: ErrorReport }) {
  const studio = useStudio();
  return (
    <Message
      tone="error"
      title={error.message}
      hint={error.hint}
      actions={
        <>
          <CopyButton label="Copy details" text={() => errorDetails(error, studio.store.getState())} />
          <code className="faint">{error.code}</code>
        </>
      }
      live
    />
  );
}

interface ToolEndProps {
  run: Pick<ToolRun<unknown>, 'status' | 'error'>;
  /** Words for the partial result of a stopped run. */
  stopped: string;
  stoppedHint?: string;
  /** Code of the error that means there is nothing to do. */
  nothing?: ErrorReport['code'];
}

/** How a tool ended without a report: it failed, was stopped, or had nothing to do. */
export function ToolEnd({ run: { status, error }, stopped, stoppedHint, nothing }: ToolEndProps) {
  if (status === 'canceled') return <Message tone="note" title={stopped} hint={stoppedHint} live />;
  if (error === null) return null;
  return error.code === nothing ? (
    <Message tone="ok" title={error.message} hint={error.hint} live />
  ) : (
    <ErrorCard error={error} />
  );
}

/** How long the hub is waited for, counted down; nothing while it is not. */
export function HubWaiting({ as: Frame = 'div' }: { as?: 'div' | 'li' }) {
  const studio = useStudio();
  const { online, hasToken } = useStudioState((s) => s.hub);
  // several files may wait: work goes on when the last of them does
  const wait = useStudioState((s) =>
    s.hubWaits.reduce<HubWait | null>((last, w) => (last && last.until >= w.until ? last : w), null),
  );
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (!wait) return;
    const tick = () => setNow(Date.now());
    tick();
    const timer = setInterval(tick, 250);
    return () => clearInterval(timer);
  }, [wait]);
  if (!wait || now === 0) return null;
  return (
    <Frame>
      <div role="timer">
        <Message
          tone="warning"
          {...waitWords(wait, { now, hasToken, online })}
          actions={<Button onClick={() => void studio.worker.endHubWaits()}>Cancel</Button>}
        />
      </div>
    </Frame>
  );
}

/** Messages of browsers and the build about a script or a style sheet that failed to load. */
const NOT_ARRIVED =
  /dynamically imported module|preload CSS|Importing a module script failed|error loading dynamically/i;

interface PartBoundaryProps {
  children: ReactNode;
  /** Called instead of showing words in place of the part: a dialog closes and reports elsewhere. */
  onMissing?: () => void;
}

/** A part of the page that loads on first use. If it fails, the rest of the page stays. */
export class PartBoundary extends Component<PartBoundaryProps, { thrown: unknown }> {
  override state: { thrown: unknown } = { thrown: null };

  static getDerivedStateFromError(thrown: unknown) {
    return { thrown };
  }

  override componentDidCatch(thrown: unknown) {
    if (!notArrived(thrown)) return;
    this.props.onMissing?.();
  }

  override render() {
    const { thrown } = this.state;
    if (thrown === null) return this.props.children;
    if (!notArrived(thrown)) throw thrown;
    if (this.props.onMissing) return null;
    return (
      <div className="stack loose screen">
        <Message
          tone="error"
          {...PART_MISSING}
          actions={<Button onClick={() => location.reload()}>Reload</Button>}
          live
        />
      </div>
    );
  }
}

export const PART_MISSING = {
  title: 'A part of the page did not arrive.',
  hint: 'Look at the connection, then reload the page: the recipe is kept.',
} as const;

function notArrived(thrown: unknown): boolean {
  return thrown instanceof Error && NOT_ARRIVED.test(thrown.message);
}
