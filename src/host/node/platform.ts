/** Node's replacement for the storage and locks of a browser. */

import { lstat, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, homedir, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../../errors';
import { diskLocks, hold, livingOwner, ownNote } from './locks';
import { diskDirectory, makeFolders } from './storage';

// Folders of one process in the system's temporary folder.

const OWNER = '.amalgam-owner';
/** A folder without a note is being made just now, or was left by a version that wrote none. */
const UNKNOWN_MS = 24 * 60 * 60 * 1000;

/**
 * Makes a folder in the system's temporary folder, else in `instead`, and removes those of the same kind that processes left
 * which were killed.
 * @param prefix of its name
 * @returns its path
 * @throws StorageFailed, StorageFull where it can be made nowhere
 */
export async function temporaryFolder(prefix: string, instead?: string): Promise<string> {
  try {
    return await makeIn(tmpdir(), prefix);
  } catch (thrown) {
    if (instead === undefined) throw unusable(thrown);
    try {
      makeFolders(instead);
      return await makeIn(instead, prefix);
    } catch {
      throw unusable(thrown, instead);
    }
  }
}

async function makeIn(place: string, prefix: string): Promise<string> {
  for (const name of await readdir(place)) {
    const folder = join(place, name);
    if (name.startsWith(prefix) && (await isLeft(folder))) await rm(folder, { recursive: true, force: true });
  }
  const made = await mkdtemp(join(place, prefix));
  try {
    const owner = join(made, OWNER);
    await writeFile(owner, await ownNote());
    hold(owner);
    return made;
  } catch (thrown) {
    await rm(made, { recursive: true, force: true });
    throw thrown;
  }
}

function unusable(thrown: unknown, instead?: string): AmalgamError {
  const { code, message } = thrown as NodeJS.ErrnoException;
  const isFull = code === 'ENOSPC' || code === 'EDQUOT';
  return new AmalgamError(
    isFull ? 'StorageFull' : 'StorageFailed',
    `Nothing can be written to ${tmpdir()}${instead === undefined ? '' : `, nor to ${instead}`}: ${message}.`,
    `Set TMPDIR to a folder that can be written and has room${instead === undefined ? '' : ', or give --cache one'}.`,
    { cause: thrown },
  );
}

async function isLeft(folder: string): Promise<boolean> {
  const stats = await lstat(folder).catch(() => undefined);
  // a folder that everybody may write to: files of another user stay
  if (!stats?.isDirectory() || (process.getuid && stats.uid !== process.getuid())) return false;
  const note = await readFile(join(folder, OWNER), 'utf8').catch(() => '');
  return note === ''
    ? Date.now() - stats.mtimeMs > UNKNOWN_MS
    : (await livingOwner(note, join(folder, OWNER))) === undefined;
}

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
    deviceMemory: totalmem() / 2 ** 30,
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

/** Options of Dawn: shaders clear their workgroup memory by a loop, as the driver of the software adapter takes a second to compile its own way. */
const DAWN = ['disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension'];

/**
 * Gives this process WebGPU as a browser has it: Dawn, from the optional package `webgpu`. On Linux it needs a Vulkan
 * driver; `VK_ICD_FILENAMES` chooses one.
 * @throws AmalgamError `NoWebGpu` when the package is not installed, or has nothing for this platform
 */
export async function offerWebGpu(): Promise<void> {
  const { create, globals } = await import('webgpu').catch((cause: unknown) => {
    throw new AmalgamError(
      'NoWebGpu',
      'WebGPU outside of a browser needs the package webgpu, which is not installed here.',
      'Install it beside the command ("npm install webgpu"), or use --engine cpu.',
      { cause },
    );
  });
  Object.assign(globalThis, globals);
  Object.defineProperty(navigator, 'gpu', { value: create(DAWN), configurable: true });
  restAtEveryTurn();
}

/** Milliseconds. */
const REST = 0.2;

/** Dawn asks its device at every turn of the event loop, by `setImmediate`: that would take a whole core for as long as anything is computed. */
function restAtEveryTurn(): void {
  const { setImmediate } = globalThis;
  const nobodyWakes = new Int32Array(new SharedArrayBuffer(4));
  const rested = (act: (...given: unknown[]) => void, ...given: unknown[]) =>
    setImmediate(() => {
      Atomics.wait(nobodyWakes, 0, 0, REST);
      act(...given);
    });
  globalThis.setImmediate = rested as typeof setImmediate;
}
