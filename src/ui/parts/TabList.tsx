import { Tabs } from 'radix-ui';
import { type ReactNode, useEffect, useRef } from 'react';

interface TabbedProps<T extends string> {
  /** Of the row of tabs. */
  label: string;
  className: string;
  chosen: T;
  /** Each with what stands behind its name, its content, and the classes of that. */
  tabs: readonly { id: T; text: string; mark?: ReactNode; content: ReactNode; className: string }[];
  onChoose(id: T): void;
}

/** Tabs, and below them the content of the chosen one. */
export function Tabbed<T extends string>({ label, className, chosen, tabs, onChoose }: TabbedProps<T>) {
  return (
    <Tabs.Root className={className} value={chosen} onValueChange={(next) => onChoose(next as T)}>
      <div className="tabs-bar">
        <TabList label={label} chosen={chosen}>
          {tabs.map(({ id, text, mark }) => (
            <Tabs.Trigger key={id} className="tab" value={id}>
              <TabLabel text={text} />
              {mark}
            </Tabs.Trigger>
          ))}
        </TabList>
      </div>
      {tabs.map(({ id, content, className: own }) => (
        <Tabs.Content key={id} className={own} value={id}>
          {content}
        </Tabs.Content>
      ))}
    </Tabs.Root>
  );
}

/**
 * The row of tabs. Radix focuses a pressed tab by script, which browsers take for the keyboard: while the pointer is at
 * work the focus ring stays away. After a press it also keeps the focus that comes to the row by keyboard, which goes on
 * to the chosen tab here. The chosen tab stays in sight where the row is longer than the page is wide.
 */
function TabList({ label, chosen, children }: { label: string; chosen: string; children: ReactNode }) {
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
