/** Web Locks of one process, and over all commands of this machine for what their cache shares. */

import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
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

// Process that something on the disk belongs to. It is identified by its number, the moment it started and its PID
// namespace: numbers are reused, and two containers that share a folder number their processes alike. A process that is
// invisible from here is judged by its file alone, which it touches as long as it lives.

const TOUCH_MS = 5_000;
/** A process that has not touched its file for so long is gone, or its container is. */
const STALE_MS = 60_000;

/** Note that identifies this process as owner of its files; empty where the system does not report its start. */
export async function ownNote(): Promise<string> {
  const started = await startOf(process.pid);
  const place = await placeOfNumbers();
  return started === undefined ? '' : `${process.pid} ${started}${place === undefined ? '' : ` ${place}`}`;
}

/** The number of the process that left the note in a file, if it is still there. */
export async function livingOwner(note: string, file: string): Promise<number | undefined> {
  const [, number, started, place] = /^(\d{1,10}) (.+?)(?: (pid:\[\d+\]))?$/.exec(note) ?? [];
  if (number === undefined || started === undefined) return undefined;
  const pid = Number(number);
  if (place !== undefined && !(await isSeenFromHere(started, place))) {
    const touched = await stat(file).catch(() => undefined);
    return touched && Date.now() - touched.mtimeMs < STALE_MS ? pid : undefined;
  }
  return (await startOf(pid)) === started ? pid : undefined;
}

/** Whether the number counts here: on this machine, since it was started, in this container. */
async function isSeenFromHere(started: string, place: string): Promise<boolean> {
  const boot = (await startOf(process.pid))?.split(' ')[0];
  return boot === started.split(' ')[0] && place === (await placeOfNumbers());
}

/** The namespace of process numbers (pid_namespaces(7)); undefined where the system has none. */
function placeOfNumbers(): Promise<string | undefined> {
  return readlink('/proc/self/ns/pid').catch(() => undefined);
}

const held = new Set<string>();
let touching: NodeJS.Timeout | undefined;

/** Touches a note as long as this process lives, or until it is let go. */
export function hold(file: string): void {
  held.add(file);
  touching ??= setInterval(touch, TOUCH_MS).unref();
}

function letGo(file: string): void {
  held.delete(file);
  if (held.size > 0) return;
  clearInterval(touching);
  touching = undefined;
}

function touch(): void {
  const now = new Date();
  for (const file of held) {
    try {
      utimesSync(file, now, now);
    } catch {
      held.delete(file); // it was taken away, and with it what it held
    }
  }
}

/** When a process started, in whatever words the system has for it; undefined when there is no such process. */
export async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    // the name in parentheses may hold anything; starttime is field 22, the 20th behind it (proc_pid_stat(5))
    const ticks = line?.slice(line.lastIndexOf(')') + 2).split(' ')[19];
    if (ticks === undefined) return undefined;
    return `${(await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()} ${ticks}`;
  }
  const [program, args] =
    process.platform === 'win32'
      ? ['powershell', ['-NoProfile', '-Command', `(Get-Process -Id ${pid}).StartTime.Ticks`]]
      : ['ps', ['-o', 'lstart=', '-p', String(pid)]];
  const { stdout } = await promisify(execFile)(program as string, args as string[]).catch(() => ({
    stdout: '',
  }));
  return stdout.trim() || undefined;
}
