/**
 * Numbers measured in this browser, to be shown again on a later visit. A browser that keeps nothing (private windows,
 * strict settings) rejects; callers go on without.
 */
import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import type { EvaluateReport } from '../../reports/evaluate';

export interface KeptOutcome {
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
  outcomes: { key: string; value: KeptOutcome; indexes: { at: number } };
}

/** The oldest go when there are more. */
const MOST = 1000;
let saved: Promise<IDBPDatabase<Saved>> | undefined;

function open(): Promise<IDBPDatabase<Saved>> {
  saved ??= openDB<Saved>('amalgam-evaluations', 1, {
    upgrade(db) {
      db.createObjectStore('outcomes', { keyPath: 'key' }).createIndex('at', 'at');
    },
  }).catch((error: unknown) => {
    saved = undefined; // the next call tries again
    throw error;
  });
  return saved;
}

export async function keepOutcome(kept: KeptOutcome): Promise<void> {
  await (await open()).put('outcomes', kept);
}

/** What was kept by this version; what other versions left, and the oldest beyond a thousand, is deleted. */
export async function keptOutcomes(version: string): Promise<KeptOutcome[]> {
  const db = await open();
  const newestFirst = (await db.getAllFromIndex('outcomes', 'at')).reverse();
  const good = newestFirst.filter((kept) => kept.version === version).slice(0, MOST);
  const keys = new Set(good.map(({ key }) => key));
  for (const { key } of newestFirst) if (!keys.has(key)) await db.delete('outcomes', key);
  return good;
}

/** Forgets all of them. */
export async function forgetOutcomes(): Promise<void> {
  await (await open()).clear('outcomes');
}
