import { useEffect, useState } from 'react';
import type { HubWait } from '../../reports/push';
import { useStudioState } from '../studio-context';
import { Message } from './Message';

/** How long the hub is waited for, counted down; nothing while it is not. */
export function HubWaiting({ as: Frame = 'div' }: { as?: 'div' | 'li' }) {
  const online = useStudioState((s) => s.hub.online);
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
          title={waitText(wait, Math.max(1, Math.ceil((wait.until - now) / 1000)), online)}
        />
      </div>
    </Frame>
  );
}

/** Why it is waited, and how long. */
function waitText({ reason, host, name }: HubWait, seconds: number, online: boolean): string {
  const again = `again in ${seconds} s`;
  if (reason === 'rate-limit') return `${host} asks to wait ${seconds} s: ${name}`;
  if (!online) return `This device is offline; trying ${again}: ${name}`;
  if (reason === 'server') return `${host} had a server error; trying ${again}: ${name}`;
  if (reason === 'connection') return `The connection to ${host} was lost; trying ${again}: ${name}`;
  return `What arrived is not what was asked for; trying ${again}: ${name}`;
}
