import { useEffect, useRef } from 'react';
import type { LogEntry } from '../state/runs';

/** The log, newest at the bottom and in view, unless the person has scrolled up to read. */
export function RunLog({ entries }: { entries: readonly LogEntry[] }) {
  const box = useRef<HTMLOListElement>(null);
  const follows = useRef(true);
  const count = entries.length;
  useEffect(() => {
    const list = box.current;
    if (list && follows.current && count > 0) list.scrollTop = list.scrollHeight;
  }, [count]);
  return (
    <ol
      ref={box}
      className="log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region is reached by keyboard too.
      tabIndex={0}
      aria-label="Log of the run"
      onScroll={({ currentTarget: list }) => {
        follows.current = list.scrollHeight - list.scrollTop - list.clientHeight < 24;
      }}
    >
      {entries.map((entry, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a log only grows at its end.
        <li key={i} data-tone={entry.tone}>
          <span className="log-time">{entry.at.toFixed(2)} s</span>
          <span>{entry.text}</span>
        </li>
      ))}
    </ol>
  );
}
