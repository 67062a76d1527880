import { type DBSchema, type IDBPDatabase, type OpenDBCallbacks, openDB } from 'idb';
import { AmalgamError } from '../../errors';
import { withinDeadline } from '../../platform';

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
