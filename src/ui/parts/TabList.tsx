import { Tabs } from 'radix-ui';
import { type ReactNode, useEffect, useRef } from 'react';

/**
 * The row of tabs. Radix focuses a pressed tab by script, which browsers take for the keyboard: while the pointer is at
 * work the focus ring stays away. After a press it also keeps the focus that comes to the row by keyboard, which goes on
 * to the chosen tab here. The chosen tab stays in sight where the row is longer than the page is wide.
 */
export function TabList({ label, chosen, children }: { label: string; chosen: string; children: ReactNode }) {
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab may be out of sight.
  useEffect(() => {
    if (!list.current) return;
    const watch = new ResizeObserver(([entry]) =>
      entry?.target
        .querySelector('[aria-selected="true"]')
        ?.scrollIntoView({ block: 'nearest', inline: 'nearest' }),
    );
    watch.observe(list.current);
    return () => watch.disconnect();
  }, [chosen]);
  return (
    <Tabs.List
      ref={list}
      className="tabs row scroll-x"
      aria-label={label}
      onFocus={({ target, currentTarget }) => {
        if (target === currentTarget)
          currentTarget.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
      }}
      onPointerDownCapture={({ currentTarget }) => {
        currentTarget.dataset.pointer = '';
      }}
      onKeyDownCapture={({ currentTarget }) => {
        delete currentTarget.dataset.pointer;
      }}
      onBlur={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget)) delete currentTarget.dataset.pointer;
      }}
    >
      {children}
    </Tabs.List>
  );
}

/** A tab's name; room is kept for its bold form, so that choosing it moves nothing. */
export function TabLabel({ text }: { text: string }) {
  return (
    <span className="tab-label">
      {text}
      <span className="tab-room" aria-hidden="true">
        {text}
      </span>
    </span>
  );
}
