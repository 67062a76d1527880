import type { ErrorReport } from '../../errors';
import type { ToolRun } from '../state/job-state';
import { ErrorCard } from './ErrorCard';
import { Message } from './Message';

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
