/**
 * Numbers measured and votes cast in this browser, saved for later visits. Without storage (private windows, strict settings) every call
 * rejects; callers go on without.
 */
import type { DBSchema } from 'idb';
import type { BlindTest } from '../../reports/blind-test';
import type { Measured } from '../state/measure-state';
import { database } from './database';

interface SavedCell {
  /** `cellKey`: target with its commits or recipe, what was scored and how. */
  key: string;
  measured: Measured;
  /** Milliseconds since 1970. */
  at: number;
  /** Of Amalgam: another one may measure otherwise. */
  version: string;
}

interface Saved extends DBSchema {
  cells: { key: string; value: SavedCell; indexes: { at: number } };
  /** Blind tests that were voted to their end. */
  tests: { key: number; value: BlindTest };
}

const open = database<Saved>('amalgam-evaluations', 5, (db, before) => {
  if (before < 4) {
    // what versions before saved has no errors
    for (const name of [...db.objectStoreNames]) db.deleteObjectStore(name);
    db.createObjectStore('cells', { keyPath: 'key' }).createIndex('at', 'at');
  }
  db.createObjectStore('tests', { keyPath: 'at' });
});

/** Cells beyond which the oldest are deleted: at most some megabytes. */
const MOST = 2000;

/** Most tests that are saved; beyond, the oldest are deleted. */
const MOST_TESTS = 100;

export const savedTests = {
  async save(test: BlindTest): Promise<void> {
    const db = await open();
    await db.put('tests', test);
    for (const at of (await db.getAllKeys('tests')).slice(0, -MOST_TESTS)) await db.delete('tests', at);
  },
  /** The newest first. */
  load: async (): Promise<BlindTest[]> => (await (await open()).getAll('tests')).reverse(),
};

export const savedCells = {
  async save(saved: SavedCell): Promise<void> {
    await (await open()).put('cells', saved);
  },
  /** Those of this version; deletes the others, and the oldest that are too many. */
  async load(version: string): Promise<SavedCell[]> {
    const db = await open();
    const newestFirst = (await db.getAllFromIndex('cells', 'at')).reverse();
    const good = newestFirst.filter((saved) => saved.version === version).slice(0, MOST);
    const keys = new Set(good.map(({ key }) => key));
    for (const { key } of newestFirst) if (!keys.has(key)) await db.delete('cells', key);
    return good;
  },
  async clear(): Promise<void> {
    await (await open()).clear('cells');
  },
};
