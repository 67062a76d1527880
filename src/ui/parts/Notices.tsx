import { UpdateNotice } from '../offline/UpdateNotice';
import { dismissNotice } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';
import { Button } from './Button';
import { CloseIcon } from './icons';
import { Message } from './Message';
import { RunNotices } from './RunNotices';

/** What has no place of its own on the page, above the run bar, until it is dismissed. */
export function Notices() {
  const studio = useStudio();
  const notices = useFacts((s) => s.notices);
  const waiting = useFacts((s) => s.interrupted.length > 0 || s.elsewhere !== null || s.update);
  if (notices.length === 0 && !waiting) return null;
  return (
    <aside className="notices" aria-label="Notices">
      <ul className="stack">
        <RunNotices />
        <UpdateNotice />
        {notices.map((notice) => (
          <li key={notice.id}>
            <Message tone={notice.tone} title={notice.message} hint={notice.hint} live />
            <Button
              variant="quiet"
              iconOnly
              aria-label="Dismiss"
              onClick={() => dismissNotice(studio, notice.id)}
            >
              <CloseIcon />
            </Button>
          </li>
        ))}
      </ul>
    </aside>
  );
}
