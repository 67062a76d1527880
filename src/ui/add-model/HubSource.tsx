import { type ReactNode, useState } from 'react';
import { type HubId, parseHubId } from '../../formats/hub-id';
import { formatBytes } from '../../formats/quantity';
import { parseModelRef } from '../../formats/recipe';
import { KNOWN_BASES } from '../local/local-files';
import { SearchIcon } from '../parts/Button';
import { ErrorCard, Message } from '../parts/Message';
import { openHub, takeModel } from '../state/models';
import { notify, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';
import { HubSettings } from './HubSettings';
import { HitList, ModelGroup, ModelRow, Take, type TakeProps, useHubSearch } from './ModelList';

/** Search as you type, or paste an id or an address; a revision is resolved to its commit and pinned. */
export function HubSource({ target, opening }: Pick<TakeProps, 'target' | 'opening'>) {
  const { error, attempt } = opening;
  const studio = useStudio();
  const hub = useStudioState((s) => s.hub);
  const storage = useStudioState((s) => s.engine.info?.storage);
  const base = useStudioState((s) => {
    const model = s.models.find((m) => m.ref === s.recipe.base);
    return target === 'contributor' && model?.origin === 'hub' ? parseModelRef(model.ref).model.path : null;
  });
  const [text, setText] = useState('');
  const pasted = namedModel(text, hub.url);
  const search = useHubSearch(
    studio.worker,
    pasted?.id ?? text,
    base,
    `${hub.url} ${hub.hasToken} ${hub.online}`,
  );

  const open = (id: string, pinned?: string) =>
    attempt(id, async (signal) => {
      signal.addEventListener('abort', () =>
        notify(
          studio,
          'note',
          `${id} was not opened.`,
          'Its opening was canceled: add it again when you like.',
        ),
      );
      const model = await openHub(studio, pinned === undefined ? id : `${id}@${pinned}`, signal);
      takeModel(studio, model.ref, target);
      // adapters of that base come next
      if (target === 'base' && studio.store.getState().recipe.contributors.length === 0)
        setView(studio, { dialog: 'contributor' });
    });
  const take = (id: string, revision?: string) => (
    <Take {...{ id, target, opening }} onTake={() => void open(id, revision)} />
  );
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
      {text === '' && target !== 'contributor' ? <Suggestions take={take} /> : null}
      <HitList {...{ search, pasted, text, take }} />
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

/** Before anything is typed: small bases to begin with. */
function Suggestions({ take }: { take(id: string): ReactNode }) {
  const models = useStudioState((s) => s.models);
  const bases = KNOWN_BASES.filter(({ id }) => !models.some((m) => m.title === id));
  return bases.length === 0 ? null : (
    <ModelGroup title="Small bases to begin with">
      {bases.map(({ id, bytes }) => (
        <ModelRow key={id} name={id} about={`≈ ${formatBytes(bytes)}`}>
          {take(id)}
        </ModelRow>
      ))}
    </ModelGroup>
  );
}
