/**
 * Finished merges kept in this browser: the recipe, the report with its hashes, and what is needed to draw them again.
 * No weights. A browser that keeps nothing (private windows, strict settings) rejects; callers go on without.
 */

import type { DBSchema, IDBPObjectStore } from 'idb';
import type { FinishedRun } from '../state/runs';
import { database } from './database';

/** What is kept of a run: `recipe` as it was merged, `asked` as it was asked for; older ones have none. */
type KeptRun = Pick<
  FinishedRun,
  | 'id'
  | 'title'
  | 'methodTitle'
  | 'recipe'
  | 'contributors'
  | 'planned'
  | 'layers'
  | 'destination'
  | 'outputFiles'
  | 'startedAt'
  | 'report'
> &
  Partial<Pick<FinishedRun, 'name'>> & { asked?: FinishedRun['recipe'] };

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
export async function keepRun(run: FinishedRun): Promise<void> {
  const { id, title, methodTitle, contributors, planned, layers, destination, outputFiles, startedAt } = run;
  await (await open()).put('runs', {
    ...{ id, title, methodTitle, contributors, planned, layers, destination, outputFiles, startedAt },
    ...(run.name !== undefined && { name: run.name }),
    recipe: run.report.recipe,
    asked: run.recipe,
    report: run.report,
  });
  const old = (await keptRuns()).slice(MOST_RUNS);
  for (const { id } of old) await deleteRun(id);
}

/** All kept runs, the newest first. */
export async function keptRuns(): Promise<FinishedRun[]> {
  const all = (await (await open()).getAll('runs')).sort((a, b) => b.startedAt - a.startedAt);
  return all.map(({ asked, ...run }) => ({
    ...run,
    recipe: asked ?? run.recipe,
    status: 'done',
    progress: null,
    tensors: run.report.tensors,
    log: [{ at: 0, tone: 'plain', text: `Merged ${new Date(run.startedAt).toLocaleString()}` }],
    error: null,
    again: true,
  }));
}

export async function deleteRun(id: string): Promise<void> {
  await (await open()).delete('runs', id);
}
