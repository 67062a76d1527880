/**
 * Finished merges kept in this browser: the recipe, the report with its hashes, and what is needed to draw them again.
 * No weights. A browser that keeps nothing (private windows, strict settings) rejects; callers go on without.
 */

import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import type { KeptRun } from '../state/run-facts';

interface Saved extends DBSchema {
  runs: { key: string; value: KeptRun };
}

/** As many are kept: the report of a large model has some hundred kilobytes. */
export const MOST_RUNS = 30;

let saved: Promise<IDBPDatabase<Saved>> | undefined;

function open(): Promise<IDBPDatabase<Saved>> {
  saved ??= openDB<Saved>('amalgam-runs', 1, {
    upgrade(db) {
      db.createObjectStore('runs', { keyPath: 'id' });
    },
  }).catch((error: unknown) => {
    saved = undefined; // the next call tries again
    throw error;
  });
  return saved;
}

/** Keeps a run; of more than {@link MOST_RUNS} the oldest go. */
export async function keepRun(run: KeptRun): Promise<void> {
  await (await open()).put('runs', run);
  const old = (await keptRuns()).slice(MOST_RUNS);
  for (const { id } of old) await deleteRun(id);
}

/** All kept runs, the newest first. */
export async function keptRuns(): Promise<KeptRun[]> {
  return (await (await open()).getAll('runs')).sort((a, b) => b.startedAt - a.startedAt);
}

export async function deleteRun(id: string): Promise<void> {
  await (await open()).delete('runs', id);
}
