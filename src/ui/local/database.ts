import { type DBSchema, type IDBPDatabase, type OpenDBCallbacks, openDB } from 'idb';
import { AmalgamError } from '../../errors';
import { withinDeadline } from '../../platform';
import type { BlindTest } from '../../reports/blind-test';
import type { Measured } from '../state/measure-state';
import type { RecipeState } from '../state/recipe-state';
import type { PredictedRun } from '../state/runs';
import { type PickedFiles, type PickedHandle, remember, remembered, walkHandle } from './local-files';

const DEADLINE_MS = 5000;

/** Opener of a database of this browser: it is opened at the first call, and again after one that failed. */
export function database<S extends DBSchema>(
  name: string,
  version: number,
  upgrade: NonNullable<OpenDBCallbacks<S>['upgrade']>,
): () => Promise<IDBPDatabase<S>> {
  let opened: Promise<IDBPDatabase<S>> | undefined;
  return () => {
    opened ??= withinDeadline(openDB<S>(name, version, { upgrade }), DEADLINE_MS, (late) => late.close())
      .then((answer) => answer?.value ?? Promise.reject(noAnswer()))
      .catch((error: unknown) => {
        opened = undefined; // the next call tries again
        throw error;
      });
    return opened;
  };
}

function noAnswer(): AmalgamError {
  return new AmalgamError(
    'StorageUnavailable',
    'The browser does not answer when it is asked for what this page keeps.',
    'Restart the browser. Until then recipes and runs are forgotten with the page.',
  );
}

/**
 * Numbers measured and votes cast in this browser, saved for later visits. Without storage (private windows, strict settings) every call
 * rejects; callers go on without.
 */

interface SavedCell {
  /** `cellKey`: target with its commits or recipe, what was scored and how. */
  key: string;
  measured: Measured;
  /** Milliseconds since 1970. */
  at: number;
  /** Of Amalgam: another one may measure otherwise. */
  version: string;
}

interface Evaluations extends DBSchema {
  cells: { key: string; value: SavedCell; indexes: { at: number } };
  /** Blind tests that were voted to their end. */
  tests: { key: number; value: BlindTest };
}

const evaluations = database<Evaluations>('amalgam-evaluations', 5, (db, before) => {
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
    const db = await evaluations();
    await db.put('tests', test);
    for (const at of (await db.getAllKeys('tests')).slice(0, -MOST_TESTS)) await db.delete('tests', at);
  },
  /** The newest first. */
  load: async (): Promise<BlindTest[]> => (await (await evaluations()).getAll('tests')).reverse(),
};

export const savedCells = {
  async save(saved: SavedCell): Promise<void> {
    await (await evaluations()).put('cells', saved);
  },
  /** Those of this version; deletes the others, and the oldest that are too many. */
  async load(version: string): Promise<SavedCell[]> {
    const db = await evaluations();
    const newestFirst = (await db.getAllFromIndex('cells', 'at')).reverse();
    const good = newestFirst.filter((saved) => saved.version === version).slice(0, MOST);
    const keys = new Set(good.map(({ key }) => key));
    for (const { key } of newestFirst) if (!keys.has(key)) await db.delete('cells', key);
    return good;
  },
};

/**
 * Recipes saved in this browser: the one in work, in each tab its own, and those saved by name, which a browser without
 * storage (private windows, strict settings) rejects.
 */

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

interface Recipes extends DBSchema {
  named: { key: string; value: NamedRecipe };
}

const DRAFT = 'draft';

const recipes = database<Recipes>('amalgam-recipes', 1, (db) => {
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
  await (await recipes()).put('named', kept);
}

/** All saved recipes, the newest first. */
export async function namedRecipes(): Promise<NamedRecipe[]> {
  return (await (await recipes()).getAll('named')).sort((a, b) => b.at - a.at);
}

export async function deleteNamed(name: string): Promise<void> {
  await (await recipes()).delete('named', name);
}

/**
 * Picked or dropped folders, saved in this browser so that one click opens them again. Browsers without folder
 * handles, or without storage, have none. No bytes of a model are saved.
 */

/** Not in TypeScript's library yet: https://wicg.github.io/file-system-access/#api-filesystemhandle */
interface AskableHandle {
  queryPermission?(options: { mode: 'read' }): Promise<PermissionState>;
  requestPermission?(options: { mode: 'read' }): Promise<PermissionState>;
}

interface SavedFolder {
  id: string;
  /** Names of the models that were found in it. */
  models: string[];
  /** The folder's path in those names, where it differs from the handle's own name. */
  path: string;
  handle: FileSystemHandle;
}

interface Folders extends DBSchema {
  folders: { key: string; value: SavedFolder; indexes: { models: string } };
}

const folders = database<Folders>('amalgam-folders', 1, (db) => {
  db.createObjectStore('folders', { keyPath: 'id' }).createIndex('models', 'models', { multiEntry: true });
});

/** Saves the folders in which models were found; of an older folder with the same model only the new one stays. */
export async function saveFolders(
  handles: readonly PickedHandle[],
  models: readonly string[],
): Promise<void> {
  const db = await folders();
  for (const { path, handle } of handles) {
    const inside = models.filter((name) => name === path || name.startsWith(`${path}/`));
    if (inside.length === 0) continue;
    for (const name of inside) {
      for (const old of await db.getAllFromIndex('folders', 'models', name))
        await db.delete('folders', old.id);
    }
    await db.put('folders', { id: path, models: inside, path, handle });
  }
}

/** Whether the folder of a model is saved. */
export async function isFolderSaved(model: string): Promise<boolean> {
  return (await (await folders()).countFromIndex('folders', 'models', model)) > 0;
}

/**
 * The saved folder that a model was found in, with its files; null where the browser gives no access to it.
 * @param ask whether the user may be asked: only right after a click
 * @throws the browser's `NotFoundError` for a folder that was moved or deleted
 */
export async function openSavedFolder(model: string, ask: boolean): Promise<PickedFiles | null> {
  const [kept] = await (await folders()).getAllFromIndex('folders', 'models', model);
  if (!kept) return null;
  const handle = kept.handle as FileSystemHandle & AskableHandle;
  const granted = (await handle.queryPermission?.({ mode: 'read' })) ?? 'granted';
  if (granted !== 'granted' && !(ask && (await handle.requestPermission?.({ mode: 'read' })) === 'granted')) {
    return null;
  }
  return { files: await walkHandle(handle, kept.path), handles: [{ path: kept.path, handle }] };
}
