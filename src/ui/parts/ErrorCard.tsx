import type { ErrorReport } from '../../errors';
import { errorDetails } from '../state/error-details';
import { useStudio } from '../studio-context';
import { CopyButton } from './CopyButton';
import { Message } from './Message';

/** An error with its remedy and everything a bug report needs, one click away. */
export function ErrorCard({ error }: { error: ErrorReport }) {
  const studio = useStudio();
  return (
    <Message tone="error" title={error.message} hint={error.hint} live>
      <div className="row message-actions">
        <CopyButton label="Copy details" text={() => errorDetails(error, studio.store.getState())} />
        <code className="faint">{error.code}</code>
      </div>
    </Message>
  );
}
