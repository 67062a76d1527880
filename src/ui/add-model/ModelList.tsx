import { type ReactNode, useEffect, useState } from 'react';
import { type ErrorReport, errorReport } from '../../errors';
import type { HubId } from '../../formats/hub-id';
import { formatCounted, formatParameters } from '../../formats/quantity';
import { parseModelRef } from '../../formats/recipe';
import type { HubHit, HubQuery, ModelInfo } from '../../reports/models';
import { Button, LockIcon } from '../parts/Button';
import type { useAttempt } from '../parts/hooks';
import { ModelMeta } from '../parts/Section';
import { takeModel, whyNotAdd } from '../state/models';
import { lineage } from '../state/roles';
import type { AddTarget, StudioWorker } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

interface HitListProps {
  search: HubSearch;
  /** The model the text names in full. */
  pasted: HubId | null;
  text: string;
  /** The button that takes a model. */
  take(id: string, revision?: string): ReactNode;
}

/** A model of a list: its name, what it is, and the button beside. */
export function ModelRow({
  name,
  about,
  children,
}: {
  name: ReactNode;
  about?: ReactNode;
  children: ReactNode;
}) {
  return (
    <li className="model row">
      <div className="grid grow">
        {typeof name === 'string' ? (
          <strong className="truncate" title={name}>
            {name}
          </strong>
        ) : (
          name
        )}
        {typeof about === 'string' ? <span className="row wrap small quiet close">{about}</span> : about}
      </div>
      {children}
    </li>
  );
}

/** A titled list of models. */
export function ModelGroup({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="stack loose hits">
      <h3 className="small quiet">{title}</h3>
      <ul className="models ruled panel" aria-label={title}>
        {children}
      </ul>
    </section>
  );
}

/** Hits of the Hub search, in groups; a pasted id stands on top, whether the search knows it or not. */
export function HitList({ search, pasted, text, take }: HitListProps) {
  const known = pasted && search.groups.some((g) => g.hits.some((h) => h.id === pasted.id));
  return (
    <div className="stack loose hits" aria-busy={search.status === 'searching'}>
      {pasted && !known ? (
        <ul className="models ruled panel" aria-label="Pasted">
          <ModelRow name={pasted.id} about={pasted.revision ? `revision ${pasted.revision}` : 'as pasted'}>
            {take(pasted.id, pasted.revision)}
          </ModelRow>
        </ul>
      ) : null}
      <p className="small quiet" role="status">
        {statusText(search, text, pasted !== null)}
      </p>
      {search.groups.map(({ title, hits }) => (
        <ModelGroup key={title} title={title}>
          {hits.map((hit) => (
            <ModelRow key={hit.id} name={<HitName hit={hit} />} about={<HitMeta hit={hit} />}>
              {take(hit.id, hit.id === pasted?.id ? pasted.revision : undefined)}
            </ModelRow>
          ))}
        </ModelGroup>
      ))}
    </div>
  );
}

function HitName({ hit }: { hit: HubHit }) {
  const [owner, ...name] = hit.id.split('/');
  return (
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
  );
}

function HitMeta({ hit }: { hit: HubHit }) {
  return (
    <span className="row wrap small quiet close">
      {hit.parameters === undefined ? null : <span>{formatParameters(hit.parameters)} parameters</span>}
      <span>{formatCounted(hit.downloads, 'download')}</span>
      <span>updated {hit.updatedAt.slice(0, 10)}</span>
    </span>
  );
}

export interface TakeProps {
  id: string;
  target: AddTarget;
  /** The id of the model that is being opened, and what ends that. */
  opening: ReturnType<typeof useAttempt>;
  onTake(): void;
}

const VERBS: Readonly<Record<AddTarget, string>> = {
  base: 'Use as base',
  contributor: 'Add',
  library: 'Open',
};

/** The button that takes a model, or shows why it cannot be taken; while the model opens, the one that ends that. */
export function Take({ id, target, opening: { working: busy, cancel }, onTake }: TakeProps) {
  const taken = useStudioState((s) => {
    const is = (ref: string) => parseModelRef(ref).model.path === id;
    if (s.recipe.base !== null && is(s.recipe.base)) return 'This is the base.';
    return target === 'contributor' && s.recipe.contributors.some((c) => is(c.ref))
      ? 'Already in the recipe.'
      : null;
  });
  if (busy === id) {
    return (
      <>
        <span className="small quiet" role="status">
          Opening…
        </span>
        <Button aria-label={`Cancel: ${id}`} onClick={cancel}>
          Cancel
        </Button>
      </>
    );
  }
  const verb = taken ? 'Added' : VERBS[target];
  return (
    <Button
      why={taken ?? (busy === null ? null : `Opening ${busy}…`)}
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

interface ModelListProps {
  label: string;
  models: readonly ModelInfo[];
  target: AddTarget;
}

/** Opened models, each with what it is and a button to take it. */
export function ModelList({ label, models, target }: ModelListProps) {
  const studio = useStudio();
  const recipe = useStudioState((s) => s.recipe);
  const base = useStudioState((s) => s.models.find((m) => m.ref === s.recipe.base));
  return (
    <ul className="models ruled panel" aria-label={label}>
      {models.map((model) => {
        const why = whyNotAdd(recipe, model, target);
        const verb =
          target === 'library'
            ? 'Opened'
            : recipe.base === model.ref
              ? 'Base'
              : target === 'base'
                ? 'Use as base'
                : why
                  ? 'Added'
                  : 'Add';
        const badge = target === 'contributor' && model.ref !== base?.ref ? lineage(model, base) : null;
        const name = (
          <span className="row wrap">
            <strong className="truncate" title={model.ref}>
              {model.ref}
            </strong>
            {badge ? (
              <span className="tag" data-tone={badge.tone} title={badge.why}>
                {badge.text}
              </span>
            ) : null}
          </span>
        );
        return (
          <ModelRow key={model.ref} name={name} about={<ModelMeta model={model} />}>
            <Button
              why={why}
              aria-label={`${verb}: ${model.title}`}
              onClick={() => takeModel(studio, model.ref, target)}
            >
              {verb}
            </Button>
          </ModelRow>
        );
      })}
    </ul>
  );
}

// The search on the Hub.

/** Pause in typing before the Hub is asked, in milliseconds. */
const PAUSE_MS = 250;
const LIMIT = 20;

interface HubGroup {
  title: string;
  hits: HubHit[];
}

interface HubSearch {
  status: 'idle' | 'searching' | 'found' | 'failed';
  groups: HubGroup[];
  error: ErrorReport | null;
}

const IDLE: HubSearch = { status: 'idle', groups: [], error: null };

/**
 * Searches while the user types; a search that comes late is ended. With a base, its adapters and fine-tunes come
 * first, also before anything is typed.
 * @param round search again when it changes (a token was given, the network came back).
 */
export function useHubSearch(
  worker: StudioWorker,
  text: string,
  base: string | null,
  round: string,
): HubSearch {
  const [search, setSearch] = useState<HubSearch>(IDLE);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `round` is there to search again.
  useEffect(() => {
    const asked = text.trim();
    if (asked === '' && base === null) return setSearch(IDLE);
    const stop = new AbortController();
    const { signal } = stop;
    setSearch((before) => ({ ...before, status: 'searching', error: null }));
    const timer = setTimeout(() => {
      searchGroups(worker, asked, base, signal).then(
        (groups) => signal.aborted || setSearch({ status: 'found', groups, error: null }),
        (thrown: unknown) =>
          signal.aborted || setSearch({ status: 'failed', groups: [], error: errorReport(thrown) }),
      );
    }, PAUSE_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [worker, text, base, round]);
  return search;
}

/** The groups of one search; a model is listed once, in the first group that has it. */
export async function searchGroups(
  worker: StudioWorker,
  text: string,
  base: string | null,
  signal?: AbortSignal,
): Promise<HubGroup[]> {
  const queries: { title: string; query: HubQuery }[] = [];
  if (base !== null) {
    const name = base.split('/').at(-1);
    queries.push(
      {
        title: `Adapters of ${name}`,
        query: { text, limit: LIMIT, derivedFrom: { base, kind: 'adapter' } },
      },
      {
        title: `Fine-tunes of ${name}`,
        query: { text, limit: LIMIT, derivedFrom: { base, kind: 'finetune' } },
      },
    );
  }
  if (text !== '')
    queries.push({ title: base === null ? 'Models' : 'Other models', query: { text, limit: LIMIT } });
  const answers = await Promise.all(queries.map(({ query }) => worker.searchHub(query, signal)));
  const seen = new Set<string>();
  return queries
    .map(({ title }, i) => {
      const hits = (answers[i] ?? []).filter((hit) => !seen.has(hit.id));
      for (const hit of hits) seen.add(hit.id);
      return { title, hits };
    })
    .filter((group) => group.hits.length > 0);
}
