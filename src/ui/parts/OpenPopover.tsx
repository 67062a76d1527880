import { Popover } from 'radix-ui';
import type { PopoverFrameProps } from './PopoverFrame';

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
