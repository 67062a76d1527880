import type { ErrorReport } from '../../errors';
import type { ToolRun } from '../state/job-state';
import { currentRun } from '../state/runs';
import type { StudioState } from '../state/studio-state';
import { useStudio } from '../studio-context';
import { CopyButton } from './CopyButton';
import { Message } from './Message';

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
