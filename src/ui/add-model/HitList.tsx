import type { HubId } from '../../formats/hub-id';
import { formatCount, formatParameters } from '../../formats/quantity';
import { parseModelRef } from '../../formats/recipe';
import type { HubHit } from '../../reports/models';
import { Button } from '../parts/Button';
import { LockIcon } from '../parts/icons';
import type { AddTarget } from '../state/studio-state';
import { useStudioState } from '../studio-context';
import type { HubSearch } from './hub-search';

interface HitListProps {
  search: HubSearch;
  /** The model the text names in full. */
  pasted: HubId | null;
  text: string;
  target: AddTarget;
  /** Id of the model being opened. */
  busy: string | null;
  onOpen(id: string, revision?: string): void;
}

/** Hits of the Hub search, in groups; a pasted id stands on top, whether the search knows it or not. */
export function HitList({ search, pasted, text, target, busy, onOpen }: HitListProps) {
  const known = pasted && search.groups.some((g) => g.hits.some((h) => h.id === pasted.id));
  return (
    <div className="stack loose hits" aria-busy={search.status === 'searching'}>
      {pasted && !known ? (
        <ul className="models panel" aria-label="Pasted">
          <li className="model row">
            <div className="grow">
              <strong className="truncate">{pasted.id}</strong>
              <span className="model-meta">
                {pasted.revision ? `revision ${pasted.revision}` : 'as pasted'}
              </span>
            </div>
            <Take
              id={pasted.id}
              target={target}
              busy={busy}
              onTake={() => onOpen(pasted.id, pasted.revision)}
            />
          </li>
        </ul>
      ) : null}
      <p className="small quiet" role="status">
        {statusText(search, text, pasted !== null)}
      </p>
      {search.groups.map(({ title, hits }) => (
        <section key={title} className="stack tight">
          <h3 className="small quiet">{title}</h3>
          <ul className="models panel" aria-label={title}>
            {hits.map((hit) => (
              <li key={hit.id} className="model row">
                <Hit hit={hit} />
                <Take id={hit.id} target={target} busy={busy} onTake={() => onOpen(hit.id)} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function Hit({ hit }: { hit: HubHit }) {
  const [owner, ...name] = hit.id.split('/');
  return (
    <div className="grow">
      <span className="row wrap">
        <span className="truncate" title={hit.id}>
          {name.length > 0 ? <span className="quiet">{owner}/</span> : null}
          <strong>{name.length > 0 ? name.join('/') : owner}</strong>
        </span>
        {hit.gated ? (
          <span
            className="tag gated"
            data-tone="warn"
            title="Its owner asks you to accept conditions on the model's page"
          >
            <LockIcon />
            gated
          </span>
        ) : null}
        {hit.private ? <span className="tag">private</span> : null}
      </span>
      <span className="model-meta">
        {hit.parameters === undefined ? null : <span>{formatParameters(hit.parameters)} parameters</span>}
        <span>{formatCount(hit.downloads)} downloads</span>
        <span>{formatCount(hit.likes)} likes</span>
        <span>updated {hit.updatedAt.slice(0, 10)}</span>
      </span>
    </div>
  );
}

interface TakeProps {
  id: string;
  target: AddTarget;
  busy: string | null;
  onTake(): void;
}

const VERBS: Readonly<Record<AddTarget, string>> = {
  base: 'Use as base',
  contributor: 'Add',
  library: 'Open',
};

/** The button that takes a model, or shows why it cannot be taken. */
export function Take({ id, target, busy, onTake }: TakeProps) {
  const taken = useStudioState((s) => {
    const is = (ref: string) => parseModelRef(ref).model.path === id;
    if (s.recipe.base !== null && is(s.recipe.base)) return 'This is the base.';
    return target === 'contributor' && s.recipe.contributors.some((c) => is(c.ref))
      ? 'Already in the recipe.'
      : null;
  });
  const verb = busy === id ? 'Opening…' : taken ? 'Added' : VERBS[target];
  return (
    <Button
      why={taken ?? (busy === null ? null : busy === id ? 'Opening…' : `Opening ${busy}…`)}
      aria-label={`${verb}: ${id}`}
      onClick={onTake}
    >
      {verb}
    </Button>
  );
}

function statusText(search: HubSearch, text: string, pasted: boolean): string {
  const found = search.groups.reduce((sum, g) => sum + g.hits.length, 0);
  if (search.status === 'searching') return 'Searching…';
  if (search.status === 'found' && found === 0) {
    return pasted ? '' : `No model with safetensors weights matches “${text.trim()}”.`;
  }
  if (search.status === 'idle')
    return 'Only models with safetensors weights are listed. Search sends what you type to the Hub.';
  return '';
}
