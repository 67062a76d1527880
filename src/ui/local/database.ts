import { type DBSchema, type IDBPDatabase, type OpenDBCallbacks, openDB } from 'idb';

/** Opener of a database of this browser: it is opened at the first call, and again after one that failed. */
export function database<S extends DBSchema>(
  name: string,
  version: number,
  upgrade: NonNullable<OpenDBCallbacks<S>['upgrade']>,
): () => Promise<IDBPDatabase<S>> {
  let opened: Promise<IDBPDatabase<S>> | undefined;
  return () => {
    opened ??= openDB<S>(name, version, { upgrade }).catch((error: unknown) => {
      opened = undefined; // the next call tries again
      throw error;
    });
    return opened;
  };
}
