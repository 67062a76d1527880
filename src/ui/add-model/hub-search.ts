import { useEffect, useState } from 'react';
import { type ErrorReport, errorReport } from '../../errors';
import type { HubHit, HubQuery } from '../../reports/models';
import type { StudioWorker } from '../state/studio';

/** Pause in typing before the Hub is asked, in milliseconds. */
const PAUSE_MS = 250;
const LIMIT = 20;

interface HubGroup {
  title: string;
  hits: HubHit[];
}

export interface HubSearch {
  status: 'idle' | 'searching' | 'found' | 'failed';
  groups: HubGroup[];
  error: ErrorReport | null;
}

const IDLE: HubSearch = { status: 'idle', groups: [], error: null };

/**
 * Searches while the user types; an answer that comes late is dropped. With a base, its adapters and fine-tunes come
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
    let late = false;
    setSearch((before) => ({ ...before, status: 'searching', error: null }));
    const timer = setTimeout(() => {
      searchGroups(worker, asked, base).then(
        (groups) => !late && setSearch({ status: 'found', groups, error: null }),
        (thrown: unknown) => !late && setSearch({ status: 'failed', groups: [], error: errorReport(thrown) }),
      );
    }, PAUSE_MS);
    return () => {
      late = true;
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
  const answers = await Promise.all(queries.map(({ query }) => worker.searchHub(query)));
  const seen = new Set<string>();
  return queries
    .map(({ title }, i) => {
      const hits = (answers[i] ?? []).filter((hit) => !seen.has(hit.id));
      for (const hit of hits) seen.add(hit.id);
      return { title, hits };
    })
    .filter((group) => group.hits.length > 0);
}
