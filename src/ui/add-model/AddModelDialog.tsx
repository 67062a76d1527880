import { useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { type PickedFiles, remember, remembered } from '../local/local-files';
import { Button, FileButton, FolderButton } from '../parts/Button';
import { DialogFrame, DialogTabs } from '../parts/DialogFrame';
import { useAttempt } from '../parts/hooks';
import { ErrorCard, Message } from '../parts/Message';
import { addModels, openLocal, takeModel, whyNotAdd } from '../state/models';
import { isUntouched } from '../state/roles';
import { type AddTarget, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { HubSource } from './HubSource';
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

const SOURCES = ['local', 'hub', 'sample'] as const;
type Source = (typeof SOURCES)[number];

/** The tab that was used last. */
function lastTab(): Source {
  const last = remembered(TAB_KEY);
  return SOURCES.find((value) => value === last) ?? 'local';
}

/** Where models come from: the sample, this computer, the Hub. */
export function AddModelDialog({ target }: { target: AddTarget }) {
  const studio = useStudio();
  const close = () => setView(studio, { dialog: null });
  const [tab, setTab] = useState(lastTab);
  // of the Hub; it goes on under another tab
  const opening = useAttempt();
  const choose = (next: Source) => {
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
          <Button why={opening.working && `Opening ${opening.working}…`} onClick={close}>
            Done
          </Button>
        </>
      }
    >
      <DialogTabs<Source>
        label="Where models come from"
        chosen={tab}
        tabs={[
          { id: 'local', text: 'This computer', content: <LocalSource target={target} /> },
          {
            id: 'hub',
            text: 'Hugging Face Hub',
            content: <HubSource key={target} target={target} opening={opening} />,
          },
          { id: 'sample', text: 'Sample', content: <SampleSource target={target} /> },
        ]}
        onChoose={choose}
      />
    </DialogFrame>
  );
}

/** The family that ships inside. */
function SampleSource({ target }: { target: AddTarget }) {
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
        A very small family: one base, two adapters and a fine-tune, each trained on one trade.
      </p>
      <ModelList label="Sample models" models={models} target={target} />
    </>
  );
}

/** Folders and files of this computer, by picker, by input where there is no picker, or by drop. */
function LocalSource({ target }: { target: AddTarget }) {
  const studio = useStudio();
  const models = useStudioState(useShallow((s) => s.models.filter((m) => m.origin === 'local')));
  const { working, error, attempt } = useAttempt();
  const open = (pick: () => Promise<PickedFiles | null>) =>
    attempt('open', async () => {
      const picked = await pick();
      if (!picked) return;
      const { files, handles } = picked;
      const opened = await openLocal(studio, files, handles);
      const [only] = opened;
      // one model is what was meant; a set finds its own roles while there is no recipe of one's own
      if (opened.length === 1 && only && whyNotAdd(studio.store.getState().recipe, only, target) === null) {
        takeModel(studio, only.ref, target);
      } else if (
        target !== 'library' &&
        isUntouched(studio.store.getState().recipe, studio.store.getState().models)
      ) {
        addModels(studio, opened);
        setView(studio, { dialog: null });
      }
    });
  const busy = working ? 'Opening…' : null;
  return (
    <>
      <div className="empty">
        <p>Drop model folders or files anywhere on this page, or:</p>
        <div className="row wrap">
          <FolderButton why={busy} label="Model folder" onPick={(pick) => void open(pick)}>
            Choose a folder…
          </FolderButton>
          <FileButton
            why={busy}
            label="Model files"
            multiple
            onFiles={(files) => void open(async () => ({ files: [...files], handles: [] }))}
          >
            Choose files…
          </FileButton>
        </div>
        <p className="small quiet">
          A checkpoint, a GGUF file, or an adapter; the folder around several models has all of them at once.
        </p>
      </div>
      {working ? <p role="status">Reading headers…</p> : null}
      {error ? <ErrorCard error={error} /> : null}
      {models.length > 0 ? (
        <ModelList label="Models of this computer" models={models} target={target} />
      ) : null}
    </>
  );
}
