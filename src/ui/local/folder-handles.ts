/**
 * Picked or dropped folders, saved in this browser so that one click opens them again. Browsers without folder
 * handles, or without storage, have none. No bytes of a model are saved.
 */
import type { DBSchema } from 'idb';
import { database } from './database';
import { type PickedFiles, type PickedHandle, walkHandle } from './local-files';

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

const open = database<Folders>('amalgam-folders', 1, (db) => {
  db.createObjectStore('folders', { keyPath: 'id' }).createIndex('models', 'models', { multiEntry: true });
});

/** Saves the folders in which models were found; of an older folder with the same model only the new one stays. */
export async function saveFolders(
  handles: readonly PickedHandle[],
  models: readonly string[],
): Promise<void> {
  const db = await open();
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

/** The saved folders, each with the models that were found in it. */
export async function savedFolders(): Promise<{ path: string; models: string[] }[]> {
  return (await (await open()).getAll('folders')).map(({ path, models }) => ({ path, models }));
}

/** Whether the folder of a model is saved. */
export async function isFolderSaved(model: string): Promise<boolean> {
  return (await (await open()).countFromIndex('folders', 'models', model)) > 0;
}

/**
 * The saved folder that a model was found in, with its files; null where the browser gives no access to it.
 * @param ask whether the user may be asked: only right after a click
 * @throws the browser's `NotFoundError` for a folder that was moved or deleted
 */
export async function openSavedFolder(model: string, ask: boolean): Promise<PickedFiles | null> {
  const [kept] = await (await open()).getAllFromIndex('folders', 'models', model);
  if (!kept) return null;
  const handle = kept.handle as FileSystemHandle & AskableHandle;
  const granted = (await handle.queryPermission?.({ mode: 'read' })) ?? 'granted';
  if (granted !== 'granted' && !(ask && (await handle.requestPermission?.({ mode: 'read' })) === 'granted')) {
    return null;
  }
  return { files: await walkHandle(handle, kept.path), handles: [{ path: kept.path, handle }] };
}
