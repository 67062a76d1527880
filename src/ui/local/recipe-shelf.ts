/**
 * Recipes kept in this browser: the one being edited, and those saved by name. A browser that keeps nothing (private
 * windows, strict settings) rejects; callers say so or go on without.
 */
import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import type { RecipeFacts } from '../state/recipe-facts';

export interface KeptRecipe {
  recipe: RecipeFacts;
  /** Milliseconds since 1970. */
  at: number;
}

export interface NamedRecipe extends KeptRecipe {
  name: string;
}

interface Shelf extends DBSchema {
  draft: { key: 'draft'; value: KeptRecipe };
  named: { key: string; value: NamedRecipe };
}

const DRAFT = 'draft';
let shelf: Promise<IDBPDatabase<Shelf>> | undefined;

function open(): Promise<IDBPDatabase<Shelf>> {
  shelf ??= openDB<Shelf>('amalgam-recipes', 1, {
    upgrade(db) {
      db.createObjectStore('draft');
      db.createObjectStore('named', { keyPath: 'name' });
    },
  }).catch((error: unknown) => {
    shelf = undefined; // the next call tries again
    throw error;
  });
  return shelf;
}

export async function keepDraft(kept: KeptRecipe): Promise<void> {
  await (await open()).put('draft', kept, DRAFT);
}

export async function draft(): Promise<KeptRecipe | undefined> {
  return (await open()).get('draft', DRAFT);
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
