import { Button } from '../parts/Button';
import { Message } from '../parts/Message';
import { whyNoTool } from '../state/job';
import { useStudioState } from '../studio-context';
import { reloadToUpdate } from './app-shell';

/** A new version is there. It is never taken while something runs. */
export function UpdateNotice() {
  const update = useStudioState((s) => s.update);
  const why = useStudioState(whyNoTool);
  if (!update) return null;
  return (
    <li>
      <Message
        tone="note"
        title="A new version of Amalgam is ready"
        hint="The recipe is kept; what was measured and written in this tab is not."
        live
      >
        <div className="row message-actions">
          <Button why={why} onClick={reloadToUpdate}>
            Reload to update
          </Button>
        </div>
      </Message>
    </li>
  );
}
