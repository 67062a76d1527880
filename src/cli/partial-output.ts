/** Output folders that are not finished: what an interrupted run left, and which process writes one. */
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import { formatBytes } from '../formats/quantity';
import { claim } from '../host/node/locks';
import { livingOwner } from '../host/node/owner';
import { listFolder } from './folder-listing';

/** In an output folder that is not finished: the journal of its run, and which process writes it. */
export const JOURNAL = '.amalgam-run.jsonl';
export const OWNER = '.amalgam-run.pid';

/** A folder without owner and journal is being made just now, or is being given its name. */
const MAKING_MS = 60_000;

/** A folder that an interrupted run left; without a journal no other run can go on with it. */
interface Leftover {
  folder: string;
  journalAt?: number;
  /** A process writes it. */
  isLiving: boolean;
}

/**
 * Unfinished output folders, newest first, whether a process still writes them or not.
 * @param stems path prefixes, followed by up to eight hexadecimal digits
 */
async function leftovers(stems: readonly string[]): Promise<Leftover[]> {
  const found: Leftover[] = [];
  for (const stem of stems) {
    const prefix = basename(stem);
    for (const name of await readdir(dirname(stem)).catch((): string[] => [])) {
      const folder = join(dirname(stem), name);
      if (!name.startsWith(prefix) || !/^[0-9a-f]{8}$/.test(name.slice(prefix.length))) continue;
      const stats = await stat(folder).catch(() => undefined);
      if (!stats?.isDirectory()) continue;
      const file = join(folder, OWNER);
      const owner = await readFile(file, 'utf8').catch(() => undefined);
      const isLiving = owner !== undefined && (await livingOwner(owner, file)) !== undefined;
      const journal = await stat(join(folder, JOURNAL))
        .catch(() => stat(aside(folder, JOURNAL)))
        .catch(() => undefined);
      if (journal?.isFile()) found.push({ folder, journalAt: journal.mtimeMs, isLiving });
      else if (!isLiving && (owner !== undefined || Date.now() - stats.mtimeMs > MAKING_MS))
        found.push({ folder, isLiving });
    }
  }
  return found.sort((a, b) => (b.journalAt ?? 0) - (a.journalAt ?? 0));
}

/** The folder that a run can go on in, the newest when there are several. */
export async function findPartial(stems: readonly string[]): Promise<string | undefined> {
  return (await leftovers(stems)).find(({ journalAt }) => journalAt !== undefined)?.folder;
}

/** Removes folders that no run can go on with: their process is gone, and they have no journal. */
export async function cleanPartials(stems: readonly string[]): Promise<void> {
  for (const { folder, journalAt } of await leftovers(stems)) {
    if (journalAt === undefined) await rm(folder, { recursive: true, force: true });
  }
}

/** Sentence naming the outputs of interrupted merges, with path and size; empty when there are none. */
export async function leftoverWords(stems: readonly string[], own?: string): Promise<string> {
  const words: string[] = [];
  for (const { folder, isLiving } of await leftovers(stems)) {
    if (isLiving || folder === own) continue;
    const { files } = await listFolder(folder);
    const bytes = [...files.values()].reduce((sum, { size }) => sum + size, 0);
    words.push(`${displayName(folder)} (${formatBytes(bytes)})`);
  }
  if (words.length === 0) return '';
  return ` An interrupted merge left ${words.join(', ')}: go on with --resume, or remove it.`;
}

/**
 * Notes that this process writes the folder.
 * @throws Busy when another one does that is still alive
 */
export async function claimPartial(folder: string): Promise<void> {
  const owner = await claim(join(folder, OWNER));
  if (owner === undefined) {
    await rename(aside(folder, JOURNAL), join(folder, JOURNAL)).catch(ignoreMissing);
    return;
  }
  throw new AmalgamError(
    'Busy',
    `${owner < 0 ? 'Another Amalgam' : `The process ${owner}, another Amalgam,`} is still writing ${basename(folder)}.`,
    'Wait until it is finished, or end it. One of another container counts as ended after a minute.',
  );
}

/** Where a file of the run waits while the folder gets its name, in which it must not be found. */
export function aside(folder: string, name: typeof JOURNAL | typeof OWNER): string {
  return `${folder}${name}`;
}

export function ignoreMissing(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== 'ENOENT') throw thrown;
}
