/** Web Locks of one process, and over all commands of this machine for what their cache shares. */
import { createHash, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hold, letGo, livingOwner, ownNote } from './owner';
import { inWords, makeFolders } from './storage';

interface LockOptions {
  ifAvailable?: boolean;
  signal?: AbortSignal;
  mode?: 'shared' | 'exclusive';
}
type Action = (lock: { name: string } | null) => unknown;

const LOOK_MS = 100;
/** Making a lock's file and writing into it takes no longer. */
const MAKING_MS = 10_000;

/** @param folder takes a file for every lock that is held */
export function diskLocks(folder: string) {
  const held = new Set<string>();
  return {
    async request(name: string, options: LockOptions | Action, given?: Action): Promise<unknown> {
      const act = (given ?? options) as Action;
      const { ifAvailable = false, signal } = given ? (options as LockOptions) : {};
      const file = join(folder, createHash('sha256').update(name).digest('hex').slice(0, 32));
      inWords(folder, () => makeFolders(folder));
      while ((await claim(file)) !== undefined) {
        signal?.throwIfAborted();
        if (ifAvailable) return act(null);
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
      held.add(name);
      try {
        return await act({ name });
      } finally {
        held.delete(name);
        release(file);
      }
    },
    query: async () => ({ held: [...held].map((name) => ({ name })), pending: [] }),
  };
}

/** Process id for a lock with an unknown owner. */
const UNKNOWN_OWNER = -1;

/**
 * Makes the file of a lock, in place of one whose process is gone.
 * @returns undefined once it is ours, else the number of the process that has it
 */
export async function claim(file: string): Promise<number | undefined> {
  const own = await ownNote();
  for (let tried = 0; tried < 2; tried++) {
    try {
      writeFileSync(file, own, { flag: 'wx' });
      hold(file);
      return undefined;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') {
        inWords(file, () => {
          throw thrown;
        });
      }
    }
    const note = noteIn(file);
    if (note === undefined) return UNKNOWN_OWNER;
    const owner = await livingOwner(note, file);
    if (owner !== undefined) return owner;
    removeStale(file, note);
  }
  return UNKNOWN_OWNER;
}

export function release(file: string): void {
  letGo(file);
  rmSync(file, { force: true });
}

/** Undefined for a file that is just being made or just gone. */
function noteIn(file: string): string | undefined {
  try {
    const note = readFileSync(file, 'utf8');
    return note !== '' || Date.now() - statSync(file).mtimeMs > MAKING_MS ? note : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the file, unless another process has removed and retaken it. */
function removeStale(file: string, note: string): void {
  const away = `${file}-${randomBytes(4).toString('hex')}`;
  try {
    renameSync(file, away);
    if (readFileSync(away, 'utf8') !== note) linkSync(away, file);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'EEXIST') throw thrown;
  } finally {
    rmSync(away, { force: true });
  }
}
