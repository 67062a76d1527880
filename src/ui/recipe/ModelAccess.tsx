import { useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import type { ErrorReport } from '../../errors';
import { isRepoId } from '../../formats/hub-id';
import { formatBytes } from '../../formats/quantity';
import { parseModelRef, repositoriesOf } from '../../formats/recipe';
import { KNOWN_BASES } from '../local/local-files';
import { Button, FolderButton } from '../parts/Button';
import { shortName } from '../state/built-recipe';
import { isSameModel, originOf } from '../state/model-origins';
import {
  closedFolders,
  openAgain,
  openFolderAs,
  openNamedHub,
  reopenFolder,
  reopenFolders,
} from '../state/named-models';
import { editRecipe, noticed, setView, type Unopened } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** Several folders of before, opened by one click. */
export function OpenAllAgain() {
  const studio = useStudio();
  const several = useStudioState((s) => closedFolders(s).length > 1);
  const [busy, setBusy] = useState(false);
  if (busy) {
    return (
      <p className="small" role="status">
        Opening the folders. If your browser asks for permission, allow it.
      </p>
    );
  }
  if (!several) return null;
  const open = async () => {
    setBusy(true);
    await reopenFolders(studio);
    setBusy(false);
  };
  return (
    <div className="row">
      <Button className="strong" onClick={() => void open()}>
        Open all again
      </Button>
    </div>
  );
}

/** Of the models that a reference (`model`, `model+adapter`) names, those that are not open or not the same as before. */
export function ModelAccess({ of, titled = false }: { of: string; titled?: boolean }) {
  const open = useStudioState(useShallow((s) => s.models.map((m) => m.ref)));
  const names = repositoriesOf(of);
  return names.map((name) =>
    open.includes(name) ? (
      <ChangedModel key={name} name={name} />
    ) : (
      <UnopenedModel key={name} name={name} titled={titled || names.length > 1} />
    ),
  );
}

/** A folder of the same name with other tensors than the recipe was made with. */
function ChangedModel({ name }: { name: string }) {
  const studio = useStudio();
  const model = useStudioState((s) => s.models.find((m) => m.ref === name));
  const origin = useStudioState((s) => s.recipe.origins[name]);
  if (!model || origin?.kind !== 'local' || !origin.was || isSameModel(origin, model)) return null;
  const { bytes } = origin.was;
  return (
    <div className="stack">
      <p className="small toned" data-tone="warn" role="status">
        Not the folder this recipe was made with:{' '}
        {bytes === model.bytes
          ? 'its tensors differ.'
          : `${formatBytes(bytes)} then, ${formatBytes(model.bytes)} now.`}
      </p>
      <div className="row wrap">
        <Button
          onClick={() =>
            editRecipe(studio, (r) => ({ ...r, origins: { ...r.origins, [name]: originOf(model) } }))
          }
        >
          Use this one
        </Button>
      </div>
    </div>
  );
}

/** Why a model is not open, and what opens it. */
function UnopenedModel({ name, titled }: { name: string; titled: boolean }) {
  const state = useStudioState((s) => s.unopened[name]);
  if (!state || state.state === 'opening') return <p className="small quiet">Opening…</p>;
  return (
    <div className="stack">
      <p className="small toned" data-tone="warn" role="status">
        {titled ? <strong>{shortName(name)}: </strong> : null}
        {says(state)}
      </p>
      <div className="row wrap">
        <Remedies name={name} state={state} />
      </div>
    </div>
  );
}

function says(state: Exclude<Unopened, { state: 'opening' }>): string {
  if (state.state === 'failed') return `${state.error.message} ${state.error.hint}`;
  return state.state === 'closed'
    ? 'Folder not open.'
    : 'Not open: a folder of yours, or a model on the Hub?';
}

function Remedies({ name, state }: { name: string; state: Exclude<Unopened, { state: 'opening' }> }) {
  const studio = useStudio();
  const local = useStudioState((s) => s.recipe.origins[name]?.kind === 'local');
  if (state.state === 'closed' && state.saved) {
    return <Button onClick={() => void reopenFolder(studio, name)}>Open again</Button>;
  }
  const folder = (
    <FolderButton
      label={`Folder of ${name}`}
      onPick={(pick) =>
        void noticed(studio, async () => {
          const picked = await pick();
          if (picked) await openFolderAs(studio, name, picked);
        })
      }
    >
      {local ? 'Open again…' : 'Open its folder…'}
    </FolderButton>
  );
  if (local) return folder;
  if (state.state === 'failed') return <HubRemedies name={name} error={state.error} />;
  const { path } = parseModelRef(name).model;
  const known = KNOWN_BASES.find(({ id }) => id === path);
  const size = known ? ` · ${formatBytes(known.bytes)}` : '';
  return (
    <>
      {folder}
      {isRepoId(path) ? (
        <Button
          tip="Asks the Hub for its files; weights are downloaded when you merge"
          onClick={() => void openNamedHub(studio, name)}
        >
          Get {path} from the Hub{size}
        </Button>
      ) : null}
    </>
  );
}

/** Remedies for a model that the Hub refused or lacks. */
function HubRemedies({ name, error }: { name: string; error: ErrorReport }) {
  const studio = useStudio();
  const hub = useStudioState((s) => s.hub.url);
  const page = `${hub}/${parseModelRef(name).model.path}`;
  const refused = error.code === 'Gated' || error.code === 'Unauthorized';
  return (
    <>
      {error.code === 'Gated' ? (
        <a className="button" href={page} target="_blank" rel="noreferrer">
          Open license page
        </a>
      ) : null}
      {refused ? (
        <Button onClick={() => setView(studio, { adding: 'library' })}>Sign in or give a token…</Button>
      ) : null}
      <Button onClick={() => openAgain(studio, name)}>Retry</Button>
    </>
  );
}
