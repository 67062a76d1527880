import { useState } from 'react';
import { useShallow } from 'zustand/react/shallow';
import { type HubId, parseHubId } from '../../formats/hub-id';
import { formatBytes } from '../../formats/quantity';
import { parseModelRef } from '../../formats/recipe';
import { KNOWN_BASES, recentHubModels } from '../local/local-files';
import { SearchIcon } from '../parts/Button';
import { useAttempt } from '../parts/hooks';
import { ErrorCard, HubWaiting, Message } from '../parts/Message';
import { openHub, takeModel } from '../state/models';
import { type AddTarget, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { HubSettings } from './HubSettings';
import { HitList, ModelGroup, ModelList, ModelRow, Take, useHubSearch } from './ModelList';

/** Search as you type, or paste an id or an address; a revision is resolved to its commit and pinned. */
export function HubSource({ target, onDone }: { target: AddTarget; onDone(): void }) {
  const studio = useStudio();
  const hub = useStudioState((s) => s.hub);
  const storage = useStudioState((s) => s.engine.info?.storage);
  const opened = useStudioState(useShallow((s) => s.models.filter((m) => m.origin === 'hub')));
  const base = useStudioState((s) => {
    const model = s.models.find((m) => m.ref === s.recipe.base);
    return target === 'contributor' && model?.origin === 'hub' ? parseModelRef(model.ref).model.path : null;
  });
  const [text, setText] = useState('');
  const { working: busy, error, attempt } = useAttempt();
  const pasted = namedModel(text, hub.url);
  const search = useHubSearch(
    studio.worker,
    pasted?.id ?? text,
    base,
    `${hub.url} ${hub.hasToken} ${hub.online}`,
  );

  const open = (id: string, pinned?: string) =>
    attempt(id, async () => {
      const model = await openHub(studio, pinned === undefined ? id : `${id}@${pinned}`);
      takeModel(studio, model.ref, target);
      if (target !== 'base') return;
      // adapters of that base come next
      if (studio.store.getState().recipe.contributors.length === 0)
        setView(studio, { adding: 'contributor' });
      else onDone();
    });
  return (
    <>
      <label className="search">
        <SearchIcon />
        <input
          className="field"
          type="search"
          placeholder="Search models, or paste owner/name@revision or a link"
          aria-label="Search the Hub"
          spellCheck={false}
          autoComplete="off"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {storage && !storage.available ? (
        <Message
          tone="warning"
          title="This browser offers no storage for downloaded models."
          hint={storage.why ?? 'Leave private browsing, or use another browser.'}
        />
      ) : null}
      {hub.online ? null : (
        <Message
          tone="warning"
          title="You are offline."
          hint="The Hub cannot be reached. The sample and models on this computer still work."
          live
        />
      )}
      {error ? <ErrorCard error={error} /> : null}
      {search.error && !error ? <ErrorCard error={search.error} /> : null}
      {opened.length > 0 && text === '' ? (
        <section className="stack loose hits">
          <h3 className="small quiet">Open now</h3>
          <ModelList label="Opened Hub models" models={opened} target={target} onDone={onDone} />
        </section>
      ) : null}
      {text === '' ? <Suggestions target={target} busy={busy} onOpen={(id) => void open(id)} /> : null}
      <HitList
        search={search}
        pasted={pasted}
        text={text}
        target={target}
        busy={busy}
        onOpen={(id, at) => void open(id, at)}
      />
      <HubWaiting />
      <HubSettings />
    </>
  );
}

/** The model a pasted text names in full, or null for words to search for. */
function namedModel(text: string, hubUrl: string): HubId | null {
  if (!text.includes('/')) return null;
  try {
    return parseHubId(text, hubUrl);
  } catch {
    // Not an id: then it is words for the search.
    return null;
  }
}

interface SuggestionsProps {
  target: AddTarget;
  /** Id of the model being opened. */
  busy: string | null;
  onOpen(id: string): void;
}

/** Before anything is typed: models that were opened in this browser before, and small bases to begin with. */
function Suggestions({ target, busy, onOpen }: SuggestionsProps) {
  const models = useStudioState((s) => s.models);
  const isClosed = (id: string) => !models.some((m) => m.title === id);
  const recent = recentHubModels().filter(isClosed);
  const bases = target === 'contributor' ? [] : KNOWN_BASES.filter(({ id }) => !recent.includes(id));
  const groups = [
    { title: 'Opened before', items: recent.map((id) => ({ id, about: null })) },
    {
      title: 'Small bases to begin with',
      items: bases.map(({ id, bytes }) => ({ id, about: `≈ ${formatBytes(bytes)}` })),
    },
  ];
  return groups
    .filter(({ items }) => items.length > 0)
    .map(({ title, items }) => (
      <ModelGroup key={title} title={title}>
        {items.map(({ id, about }) => (
          <ModelRow key={id} name={id} about={about}>
            <Take id={id} target={target} busy={busy} onTake={() => onOpen(id)} />
          </ModelRow>
        ))}
      </ModelGroup>
    ));
}
