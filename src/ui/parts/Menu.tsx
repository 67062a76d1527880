import { DropdownMenu } from 'radix-ui';
import type { ReactElement } from 'react';

export interface MenuAction {
  label: string;
  hint?: string;
  /** Why it cannot be done now. */
  why?: string | null;
  act(): void;
}

/** Actions that open at a button. */
export function Menu({ trigger, actions }: { trigger: ReactElement; actions: readonly MenuAction[] }) {
  return (
    // a modal menu locks scrolling with a style element, which the page's policy forbids
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4} collisionPadding={12}>
          {actions.map(({ label, hint, why = null, act }) => (
            <DropdownMenu.Item key={label} className="grid menu-item" disabled={why !== null} onSelect={act}>
              <span>{label}</span>
              {why || hint ? <span className="small quiet">{why ?? hint}</span> : null}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
