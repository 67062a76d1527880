/** Web Locks of one process, and over all commands of this machine for what their cache shares. */
import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

interface LockOptions {
  ifAvailable?: boolean;
  signal?: AbortSignal;
  mode?: 'shared' | 'exclusive';
}
type Action = (lock: { name: string } | null) => unknown;

const LOOK_MS = 100;

/** @param folder takes a file for every lock that is held */
export function diskLocks(folder: string) {
  mkdirSync(folder, { recursive: true });
  const held = new Set<string>();
  return {
    async request(name: string, options: LockOptions | Action, given?: Action): Promise<unknown> {
      const act = (given ?? options) as Action;
      const { ifAvailable = false, signal } = given ? (options as LockOptions) : {};
      const file = join(folder, createHash('sha256').update(name).digest('hex').slice(0, 32));
      while (!take(file)) {
        signal?.throwIfAborted();
        if (ifAvailable) return act(null);
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
      held.add(name);
      try {
        return await act({ name });
      } finally {
        held.delete(name);
        rmSync(file, { force: true });
      }
    },
    query: async () => ({ held: [...held].map((name) => ({ name })), pending: [] }),
  };
}

/** Makes the file of a lock, in place of one whose process is gone. */
function take(file: string): boolean {
  for (let tried = 0; tried < 2; tried++) {
    try {
      const made = openSync(file, 'wx');
      writeSync(made, String(process.pid));
      closeSync(made);
      return true;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
    }
    if (isAlive(ownerOf(file))) return false;
    rmSync(file, { force: true });
  }
  return false;
}

/** 0 for a file that is just being made or just gone. */
function ownerOf(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch {
    return 0;
  }
}

function isAlive(pid: number): boolean {
  if (pid === 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}
