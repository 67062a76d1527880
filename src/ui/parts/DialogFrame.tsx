import { Dialog } from 'radix-ui';
import { type ComponentProps, type ReactNode, useState } from 'react';
import '../styles/dialogs.css';
import { setView } from '../state/studio';
import { useStudio } from '../studio-context';
import { Button, CloseIcon } from './Button';
import { HubWaiting } from './Message';
import { Tabbed } from './TabList';

type DialogTabsProps<T extends string> = Omit<ComponentProps<typeof Tabbed<T>>, 'className' | 'tabs'> & {
  tabs: readonly { id: T; text: string; content: ReactNode }[];
};

/** Tabs that fill a dialog. */
export function DialogTabs<T extends string>({ tabs, ...props }: DialogTabsProps<T>) {
  const bodies = tabs.map((tab) => ({ ...tab, className: 'dialog-body stack loose' }));
  return <Tabbed {...props} className="grid head-rows" tabs={bodies} />;
}

interface DialogFrameProps {
  title: string;
  about: string;
  /** The line at the bottom. */
  foot?: ReactNode;
  children: ReactNode;
}

/**
 * An open dialog: what it is, its content, a line below. The backdrop is our own: Radix's overlay locks scrolling with a
 * style element, which the page's policy forbids.
 */
export function DialogFrame({ title, about, foot, children }: DialogFrameProps) {
  const studio = useStudio();
  // Radix gives the focus back to a trigger, and these dialogs are opened by state
  const [opener] = useState(() => document.activeElement);
  return (
    <Dialog.Root open onOpenChange={(open) => !open && setView(studio, { dialog: null })}>
      <Dialog.Portal>
        <div className="backdrop" />
        <Dialog.Content
          className="dialog"
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (opener instanceof HTMLElement) opener.focus();
          }}
        >
          <div className="row spread loose dialog-head">
            <div>
              <Dialog.Title className="title">{title}</Dialog.Title>
              <Dialog.Description className="small quiet">{about}</Dialog.Description>
              <HubWaiting />
            </div>
            <Dialog.Close asChild>
              <Button icon={CloseIcon} variant="quiet" aria-label="Close" />
            </Dialog.Close>
          </div>
          {children}
          {foot ? <div className="row spread loose dialog-foot">{foot}</div> : null}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
