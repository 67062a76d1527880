/** What a browser gives Amalgam, given by Node: storage and locks. */
import { rm } from 'node:fs/promises';
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { diskLocks } from './locks';
import { diskDirectory } from './storage';
import { temporaryFolder } from './temporary';

/** Where downloads, masks and other things worth keeping go by default. */
export function defaultCache(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'amalgam');
}

/** Folders that belong to one command alone; all commands share the others. */
const OWN = new Set(['outputs', 'folder-runs']);

/**
 * Makes this process a place where the worker's code runs. A cache that cannot be written stops only what needs it.
 * @param cache takes downloads and masks
 * @returns what removes what only this command needed
 * @throws StorageFailed, StorageFull where neither the temporary folder nor the cache can be written
 */
export async function becomeHost(cache: string): Promise<() => Promise<void>> {
  const own = await temporaryFolder('amalgam-command-', cache);
  const shared = diskDirectory(cache);
  const mine = diskDirectory(own);
  const root = {
    // where storage is tried: a cache that cannot be written is found out by what needs it
    ...mine,
    getDirectoryHandle: (name: string, options?: { create?: boolean }) =>
      (OWN.has(name) ? mine : shared).getDirectoryHandle(name, options),
  };
  const shares = diskLocks(join(cache, 'locks'));
  const owns = diskLocks(join(own, 'locks'));
  const navigator = {
    hardwareConcurrency: availableParallelism(),
    storage: { getDirectory: async () => root },
    locks: {
      // one merge at a time is a rule of tabs, which share an output; commands have one each
      request: (name: string, ...rest: [never, never]) =>
        (/^amalgam-(run|stages|output)/.test(name) ? owns : shares).request(name, ...rest),
      query: () => owns.query(),
    },
  };
  Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true });
  return () => rm(own, { recursive: true, force: true });
}
