import { Popover } from 'radix-ui';
import type { ReactElement, ReactNode } from 'react';

export interface PopoverFrameProps {
  /** Name of the opened part. */
  label: string;
  /** The button that opens it. */
  trigger: ReactElement<{ onClick?(): void }>;
  /** Beside the button, instead of below it. */
  beside?: boolean;
  className?: string;
  onOpenChange?(): void;
  children: ReactNode;
}

/** What opens at a button that was pressed; it loads then. */
export function OpenPopover(props: PopoverFrameProps) {
  const { label, trigger, beside = false, className = '', onOpenChange, children } = props;
  return (
    <Popover.Root defaultOpen {...(onOpenChange ? { onOpenChange } : {})}>
      <Popover.Trigger asChild>{trigger}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          className={`popover scroll stack ${className}`.trimEnd()}
          {...(beside ? { side: 'right', align: 'start', sideOffset: 12 } : { align: 'end', sideOffset: 6 })}
          collisionPadding={12}
          aria-label={label}
        >
          {children}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
