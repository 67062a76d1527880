/**
 * Recipes saved in this browser: the one being edited, and those saved by name. A browser without storage (private
 * windows, strict settings) rejects; callers report that or go on without.
 */
import type { DBSchema } from 'idb';
import type { RecipeState } from '../state/recipe-state';
import type { PredictedRun } from '../state/runs';
import { database } from './database';
import { remember, remembered } from './remembered-choices';

export interface SavedRecipe {
  recipe: RecipeState;
  /** Milliseconds since 1970. */
  at: number;
}

export interface NamedRecipe extends SavedRecipe {
  name: string;
}

/** The recipe in work, and the runs beside it. */
export interface Draft extends SavedRecipe {
  /** Absent in drafts of an older version. */
  runs?: readonly PredictedRun[];
}

interface Saved extends DBSchema {
  draft: { key: 'draft'; value: Draft };
  named: { key: string; value: NamedRecipe };
}

const DRAFT = 'draft';

const open = database<Saved>('amalgam-recipes', 1, (db) => {
  db.createObjectStore('draft');
  db.createObjectStore('named', { keyPath: 'name' });
});

/**
 * Saves the draft, unless another tab has saved one since this one last saw it.
 * @param seen `at` of the draft that this tab read or wrote last; `anyway` replaces whatever is there
 * @returns whether it was saved
 */
export async function saveDraft(kept: Draft, seen: number | undefined | 'anyway'): Promise<boolean> {
  const { store, done } = (await open()).transaction('draft', 'readwrite');
  const other = seen === 'anyway' ? undefined : await store.get(DRAFT);
  const free = other === undefined || other.at === seen;
  if (free) await store.put(kept, DRAFT);
  await done;
  return free;
}

/**
 * Saves the draft of a page that is being left, synchronously: its database answers no more.
 * @param seen `at` of the drafts that this tab read or wrote, or that it is writing
 */
export function leaveDraft(kept: Draft, seen: readonly number[]): void {
  remember(DRAFT, JSON.stringify({ kept, seen }));
}

/** The draft: the one of the page that was left last, unless a tab has saved another since. */
export async function draft(): Promise<Draft | undefined> {
  const inDatabase = await (await open()).get('draft', DRAFT);
  const text = remembered(DRAFT);
  if (text === null) return inDatabase;
  remember(DRAFT, null);
  const { kept, seen }: { kept: Draft; seen: number[] } = JSON.parse(text);
  const isNewer = inDatabase === undefined || seen.includes(inDatabase.at);
  return isNewer && (await saveDraft(kept, inDatabase?.at)) ? kept : inDatabase;
}

/** Saves under a name; an older recipe of that name is replaced. */
export async function saveNamed(kept: NamedRecipe): Promise<void> {
  await (await open()).put('named', kept);
}

/** All saved recipes, the newest first. */
export async function namedRecipes(): Promise<NamedRecipe[]> {
  return (await (await open()).getAll('named')).sort((a, b) => b.at - a.at);
}

export async function deleteNamed(name: string): Promise<void> {
  await (await open()).delete('named', name);
}
