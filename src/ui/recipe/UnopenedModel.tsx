/** The card of a model that the recipe names and that is not open. */
import { useCallback, useEffect, useState } from 'react';
import type { ErrorReport } from '../../errors';
import { fullPrecisionName, isRepoId } from '../../formats/hub-id';
import { formatBytes } from '../../formats/quantity';
import { parseModelRef } from '../../formats/recipe';
import type { ModelInfo } from '../../reports/models';
import { KNOWN_BASES } from '../local/local-files';
import { Button, FolderButton } from '../parts/Button';
import { useAttempt } from '../parts/hooks';
import { ModelMeta } from '../parts/Section';
import { shortName } from '../state/built-recipe';
import {
  noteFailed,
  openAgain,
  openFolderAs,
  openInstead,
  openNamedHub,
  reopenFolder,
} from '../state/named-models';
import { readRoom } from '../state/stored-items';
import { noticed, type Studio, setView, type Unopened } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** Why a model is not open, and what opens it. */
export function UnopenedModel({ name, titled }: { name: string; titled: boolean }) {
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
  return (
    <>
      {folder}
      {isRepoId(parseModelRef(name).model.path) ? <HubOffer name={name} /> : null}
    </>
  );
}

/** What a name is on the Hub, what it was made from where it is a copy in fewer bits, and the room there is. */
interface Offer {
  asked: ModelInfo;
  /** Or the name of one that may not be read. */
  full?: ModelInfo | string;
  /** Bytes; null where the browser does not say. */
  free: number | null;
}

async function offerOf(studio: Studio, name: string, signal: AbortSignal): Promise<Offer> {
  const asked = await studio.worker.openHub(name, signal);
  const room = await readRoom(studio);
  const free = room && room.quota - room.used;
  const [owner] = asked.title.split('/');
  const plain = fullPrecisionName(asked.title);
  // unsloth and others keep both; of those that do not say what they copy, a guess that is not there is no offer
  const guess = asked.title.endsWith(`/${plain}`) ? undefined : `${owner}/${plain}`;
  const other = asked.copyOf ?? guess;
  if (other === undefined) return { asked, free };
  const full = await studio.worker
    .openHub(other, signal)
    .catch((thrown: { code?: string }) => (thrown.code === 'Gated' ? other : undefined));
  return { asked, free, ...(full === undefined ? {} : { full }) };
}

/** Gets a model from the Hub: at once where there is nothing to decide, else after what it is has been shown. */
function HubOffer({ name }: { name: string }) {
  const studio = useStudio();
  const { path } = parseModelRef(name).model;
  // whose adapter is from the Hub has asked it already
  const known = useStudioState(
    (s) => s.hub.online && s.models.some((m) => m.origin === 'hub' && m.adapter?.baseModel === name),
  );
  const [offer, setOffer] = useState<Offer | null>(null);
  const { working: asking, attempt } = useAttempt();
  const ask = useCallback(
    (decide: boolean) =>
      attempt('ask', async (signal) => {
        try {
          const found = await offerOf(studio, name, signal);
          if (decide && !found.full && fits(found.asked, found.free)) await openNamedHub(studio, name);
          else setOffer(found);
        } catch (thrown) {
          if (!signal.aborted) noteFailed(studio, name, thrown);
        }
      }),
    [studio, name, attempt],
  );
  useEffect(() => {
    if (known) void ask(false);
  }, [known, ask]);
  if (!offer) {
    const size = KNOWN_BASES.find(({ id }) => id === path)?.bytes;
    return (
      <Button
        why={asking ? 'Asking the Hub…' : null}
        tip="Asks the Hub for its files; weights are downloaded when you merge"
        onClick={() => void ask(true)}
      >
        Get {path} from the Hub{size === undefined ? '' : ` · ${formatBytes(size)}`}
      </Button>
    );
  }
  const { asked, full, free } = offer;
  return (
    <>
      <Offered model={asked} free={free}>
        <Button onClick={() => void openNamedHub(studio, name)}>
          {full ? 'Get the copy in fewer bits' : `Get ${path} from the Hub`} · {formatBytes(asked.bytes)}
        </Button>
      </Offered>
      {typeof full === 'object' ? (
        <Offered model={full} free={free}>
          <Button onClick={() => void openInstead(studio, name, full.title)}>
            Get the full weights · {formatBytes(full.bytes)}
          </Button>
        </Offered>
      ) : null}
      {typeof full === 'string' ? (
        <Offered model={{ title: full, gated: true }} free={free}>
          <LicenseLink of={full} />
          <TokenButton />
          <Button onClick={() => void ask(false)}>Ask again</Button>
        </Offered>
      ) : null}
    </>
  );
}

function Offered({
  model,
  free,
  children,
}: {
  model: ModelInfo | { title: string; gated: true };
  free: number | null;
  children: React.ReactNode;
}) {
  return (
    <div className="stack tight">
      <span className="small">
        <strong>{model.title}</strong>
        {model.gated ? ' · gated: its author decides who may read it' : ''}
      </span>
      {'bytes' in model ? (
        <>
          <ModelMeta model={model} short />
          {fits(model, free) ? null : (
            <p className="small toned" data-tone="warn">
              More than the {formatBytes(Math.max(free ?? 0, 0))} free in this browser’s storage.
            </p>
          )}
        </>
      ) : null}
      <div className="row wrap">{children}</div>
    </div>
  );
}

const fits = ({ bytes }: ModelInfo, free: number | null) => free === null || bytes <= free;

/** Remedies for a model that the Hub refused or lacks. */
function HubRemedies({ name, error }: { name: string; error: ErrorReport }) {
  const studio = useStudio();
  const refused = error.code === 'Gated' || error.code === 'Unauthorized';
  return (
    <>
      {error.code === 'Gated' ? <LicenseLink of={parseModelRef(name).model.path} /> : null}
      {refused ? <TokenButton /> : null}
      <Button onClick={() => openAgain(studio, name)}>Retry</Button>
    </>
  );
}

function LicenseLink({ of }: { of: string }) {
  const hub = useStudioState((s) => s.hub.url);
  return (
    <a className="button" href={`${hub}/${of}`} target="_blank" rel="noreferrer">
      Open license page
    </a>
  );
}

function TokenButton() {
  const studio = useStudio();
  return <Button onClick={() => setView(studio, { dialog: 'library' })}>Sign in or give a token…</Button>;
}
