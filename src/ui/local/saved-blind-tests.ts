/** Blind tests that were voted to their end, saved for later visits. Without storage every call rejects; callers go on without. */
import type { DBSchema } from 'idb';
import type { BlindTest } from '../../reports/blind-test';
import { database } from './database';

interface Saved extends DBSchema {
  tests: { key: number; value: BlindTest };
}

const open = database<Saved>('amalgam-blind-tests', 1, (db) => {
  db.createObjectStore('tests', { keyPath: 'at' });
});

/** Most tests that are saved; beyond, the oldest are deleted. */
const MOST = 100;

export async function saveBlindTest(test: BlindTest): Promise<void> {
  const db = await open();
  await db.put('tests', test);
  for (const at of (await db.getAllKeys('tests')).slice(0, -MOST)) await db.delete('tests', at);
}

/** The newest first. */
export async function savedBlindTests(): Promise<BlindTest[]> {
  return (await (await open()).getAll('tests')).reverse();
}
