import { Tabs } from 'radix-ui';
import type { ReactNode } from 'react';

/**
 * The row of tabs. Radix focuses a pressed tab by script, which browsers take for the keyboard: while the pointer is at
 * work the focus ring stays away. After a press it also holds the focus that comes to the row by keyboard, which goes on
 * to the chosen tab here.
 */
export function TabList({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Tabs.List
      className="tabs"
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
