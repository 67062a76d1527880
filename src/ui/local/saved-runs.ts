/**
 * Finished merges kept in this browser: the recipe, the report with its hashes, and what is needed to draw them again.
 * No weights. A browser that keeps nothing (private windows, strict settings) rejects; callers go on without.
 */

import type { DBSchema, IDBPObjectStore } from 'idb';
import type { KeptRun } from '../state/run-state';
import { database } from './database';

interface Saved extends DBSchema {
  runs: { key: string; value: KeptRun };
}

/** As many are kept: the report of a large model has some hundred kilobytes. */
const MOST_RUNS = 30;

const open = database<Saved>('amalgam-runs', 2, async (db, before, _, transaction) => {
  if (before < 1) db.createObjectStore('runs', { keyPath: 'id' });
  else await renameHashes(transaction.objectStore('runs'));
});

interface OldHash {
  hash?: string;
  sha256?: string;
}

/** Runs of version 1 have their hashes under another name. */
async function renameHashes(runs: IDBPObjectStore<Saved, 'runs'[], 'runs', 'versionchange'>): Promise<void> {
  for (const run of await runs.getAll()) {
    for (const file of [...run.report.inputs, ...run.report.shards] as OldHash[]) {
      if (file.sha256 !== undefined) file.hash = file.sha256;
      delete file.sha256;
    }
    await runs.put(run);
  }
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
