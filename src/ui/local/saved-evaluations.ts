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

/** The oldest go when there are more. */
const MOST = 1000;
/** Most items of scores that are saved: some ten megabytes. */
const MOST_ITEMS = 100_000;

const open = database<Saved>('amalgam-evaluations', 3, (db, before) => {
  if (before < 1) db.createObjectStore('outcomes', { keyPath: 'key' }).createIndex('at', 'at');
  // scores of version 2 have their task under another name
  if (before === 2) db.deleteObjectStore('scores');
  db.createObjectStore('scores', { keyPath: 'key' }).createIndex('at', 'at');
});

export async function saveOutcome(kept: SavedOutcome): Promise<void> {
  await (await open()).put('outcomes', kept);
}

/** Outcomes saved by this version; deletes those of other versions, and the oldest beyond a thousand. */
export async function savedOutcomes(version: string): Promise<SavedOutcome[]> {
  const db = await open();
  const newestFirst = (await db.getAllFromIndex('outcomes', 'at')).reverse();
  const good = newestFirst.filter((kept) => kept.version === version).slice(0, MOST);
  const keys = new Set(good.map(({ key }) => key));
  for (const { key } of newestFirst) if (!keys.has(key)) await db.delete('outcomes', key);
  return good;
}

export async function saveScore(kept: SavedScore): Promise<void> {
  await (await open()).put('scores', kept);
}

/** Scores of this version, the newest first; others, and the oldest beyond {@link MOST_ITEMS}, are deleted. */
export async function savedScores(version: string): Promise<SavedScore[]> {
  const db = await open();
  const newestFirst = (await db.getAllFromIndex('scores', 'at')).reverse();
  let items = 0;
  const good = newestFirst.filter((kept) => {
    if (kept.version !== version) return false;
    items += kept.items.length;
    return items <= MOST_ITEMS;
  });
  const keys = new Set(good.map(({ key }) => key));
  for (const { key } of newestFirst) if (!keys.has(key)) await db.delete('scores', key);
  return good;
}

/** Forgets all outcomes. */
export async function forgetOutcomes(): Promise<void> {
  await (await open()).clear('outcomes');
}

/** Forgets all scores. */
export async function forgetScores(): Promise<void> {
  await (await open()).clear('scores');
}
