import { Tabs } from 'radix-ui';
import { useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { remember, remembered } from '../local/remembered-choices';
import { Button } from '../parts/Button';
import { DialogFrame } from '../parts/DialogFrame';
import { Message } from '../parts/Message';
import { TabLabel, TabList } from '../parts/TabList';
import { setView } from '../state/studio';
import type { AddTarget } from '../state/studio-state';
import { useStudio, useStudioState } from '../studio-context';
import { HubSource } from './HubSource';
import { LocalSource } from './LocalSource';
import { ModelList } from './ModelList';

const words: Readonly<Record<AddTarget, { title: string; about: string }>> = {
  base: {
    title: 'Choose the base',
    about: 'The checkpoint that the changes of contributors are measured from.',
  },
  library: {
    title: 'Open models',
    about: 'To measure their difference, extract a LoRA or collapse layers; the recipe does not change.',
  },
  contributor: {
    title: 'Add contributors',
    about: 'Adapters and fine-tunes whose changes are merged into the base.',
  },
};

const TAB_KEY = 'models-from';

/** The tab that was used last. */
function lastTab(): string {
  const kept = remembered(TAB_KEY);
  return kept === 'hub' || kept === 'sample' ? kept : 'local';
}

/** Where models come from: the sample, this computer, the Hub. */
export function AddModelDialog({ target }: { target: AddTarget }) {
  const studio = useStudio();
  const close = () => setView(studio, { adding: null });
  const [tab, setTab] = useState(lastTab);
  const choose = (next: string) => {
    setTab(next);
    remember(TAB_KEY, next);
  };
  return (
    <DialogFrame
      title={words[target].title}
      about={words[target].about}
      foot={
        <>
          <p className="small quiet">Models stay on this computer. Nothing is uploaded.</p>
          <Button onClick={close}>Done</Button>
        </>
      }
      onClose={close}
    >
      <Tabs.Root className="dialog-tabs" value={tab} onValueChange={choose}>
        <TabList label="Where models come from">
          <Tabs.Trigger className="tab" value="local">
            <TabLabel text="This computer" />
          </Tabs.Trigger>
          <Tabs.Trigger className="tab" value="hub">
            <TabLabel text="Hugging Face Hub" />
          </Tabs.Trigger>
          <Tabs.Trigger className="tab" value="sample">
            <TabLabel text="Sample" />
          </Tabs.Trigger>
        </TabList>
        <Tabs.Content className="dialog-body" value="sample">
          <SampleSource target={target} onDone={close} />
        </Tabs.Content>
        <Tabs.Content className="dialog-body" value="local">
          <LocalSource target={target} onDone={close} />
        </Tabs.Content>
        <Tabs.Content className="dialog-body" value="hub">
          <HubSource key={target} target={target} onDone={close} />
        </Tabs.Content>
      </Tabs.Root>
    </DialogFrame>
  );
}

/** The family that ships inside. */
function SampleSource({ target, onDone }: { target: AddTarget; onDone(): void }) {
  const models = useStudioState(useShallow((s) => s.models.filter((m) => m.origin === 'sample')));
  const opening = useStudioState((s) => s.opening.length > 0);
  if (models.length === 0) {
    return opening ? (
      <p className="quiet">Opening the sample…</p>
    ) : (
      <Message
        tone="warning"
        title="The sample could not be opened."
        hint="Reload the page, or open models of your own."
      />
    );
  }
  return (
    <>
      <p className="quiet">
        A very small family made for trying things out: one base, two adapters and a fine-tune, each trained
        on one trade. It merges in a moment.
      </p>
      <ModelList label="Sample models" models={models} target={target} onDone={onDone} />
    </>
  );
}
