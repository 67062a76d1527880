/**
 * Recipes saved in this browser: the one in work, in each tab its own, and those saved by name, which a browser without
 * storage (private windows, strict settings) rejects.
 */
import type { DBSchema } from 'idb';
import type { RecipeState } from '../state/recipe-state';
import type { PredictedRun } from '../state/runs';
import { database } from './database';
import { remember, remembered } from './remembered-choices';

export interface NamedRecipe {
  name: string;
  recipe: RecipeState;
  /** Milliseconds since 1970. */
  at: number;
}

/** The recipe in work, and the runs beside it. */
export interface Draft {
  recipe: RecipeState;
  runs: readonly PredictedRun[];
}

interface Saved extends DBSchema {
  named: { key: string; value: NamedRecipe };
}

const DRAFT = 'draft';

const open = database<Saved>('amalgam-recipes', 1, (db) => {
  db.createObjectStore('named', { keyPath: 'name' });
});

/**
 * Saves the recipe in work: for this tab, and, as the last of all tabs, for the next visit. Without storage it lasts as
 * long as the page.
 */
export function saveDraft(kept: Draft): void {
  const text = JSON.stringify(kept);
  remember(DRAFT, text, 'tab');
  remember(DRAFT, text);
}

/** The recipe that this tab had in work, else the last of all tabs. */
export function draft(): Draft | null {
  const text = remembered(DRAFT, 'tab') ?? remembered(DRAFT);
  return text === null ? null : JSON.parse(text);
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
