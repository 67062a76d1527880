/**
 * Numbers measured in this browser, saved for later visits. Without storage (private windows, strict settings) every call
 * rejects; callers go on without.
 */
import type { DBSchema } from 'idb';
import type { EvaluateReport } from '../../reports/evaluate';
import type { SavedScore } from '../state/evaluation-state';
import { database } from './database';

interface SavedOutcome {
  /** `outcomeKey`: target with its commits or recipe, hash of the text, protocol. */
  key: string;
  report: EvaluateReport;
  bytes: number | null;
  /** Milliseconds since 1970. */
  at: number;
  /** Of Amalgam: another one may measure otherwise. */
  version: string;
}

interface Saved extends DBSchema {
  outcomes: { key: string; value: SavedOutcome; indexes: { at: number } };
  scores: { key: string; value: SavedScore; indexes: { at: number } };
}

const open = database<Saved>('amalgam-evaluations', 3, (db, before) => {
  if (before < 1) db.createObjectStore('outcomes', { keyPath: 'key' }).createIndex('at', 'at');
  // scores of version 2 have their task under another name
  if (before === 2) db.deleteObjectStore('scores');
  db.createObjectStore('scores', { keyPath: 'key' }).createIndex('at', 'at');
});

/**
 * The numbers of one store.
 * @param most of what `size` counts; beyond it the oldest are deleted
 */
function numbersIn<T extends SavedOutcome | SavedScore>(
  store: 'outcomes' | 'scores',
  most: number,
  size: (saved: T) => number,
) {
  return {
    async save(saved: T): Promise<void> {
      await (await open()).put(store, saved as SavedOutcome & SavedScore);
    },
    /** Those of this version, the newest first; deletes the others, and the oldest that are too many. */
    async load(version: string): Promise<T[]> {
      const db = await open();
      const newestFirst = ((await db.getAllFromIndex(store, 'at')) as unknown as T[]).reverse();
      let sum = 0;
      const good = newestFirst.filter((saved) => {
        if (saved.version !== version) return false;
        sum += size(saved);
        return sum <= most;
      });
      const keys = new Set(good.map(({ key }) => key));
      for (const { key } of newestFirst) if (!keys.has(key)) await db.delete(store, key);
      return good;
    },
    async clear(): Promise<void> {
      await (await open()).clear(store);
    },
  };
}

export const savedOutcomes = numbersIn<SavedOutcome>('outcomes', 1000, () => 1);

/** A hundred thousand items: some ten megabytes. */
export const savedScores = numbersIn<SavedScore>('scores', 100_000, ({ items }) => items.length);
