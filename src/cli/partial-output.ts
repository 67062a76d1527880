/** Output folders that are not finished: what an interrupted run left, and which process writes one. */

import {
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { displayName, publishOrder } from '../formats/names';
import { formatBytes } from '../formats/quantity';
import { claim, livingOwner } from '../host/node/locks';
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

/** Removes folders that no run can go on with: their process is gone, and they have no journal, or are `needless` all the same. */
export async function cleanPartials(stems: readonly string[], needless = false): Promise<void> {
  for (const { folder, journalAt, isLiving } of await leftovers(stems)) {
    if (journalAt === undefined || (needless && !isLiving))
      await rm(folder, { recursive: true, force: true });
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
function aside(folder: string, name: typeof JOURNAL | typeof OWNER): string {
  return `${folder}${name}`;
}

function ignoreMissing(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== 'ENOENT') throw thrown;
}

// How a finished output gets its name: by one rename, or file by file where its folder is there already.

/** In a partial output that is being moved into its folder: the paths that belong to it. */
const MOVING = '.amalgam-files.json';
const PARTIAL_INSIDE = '.amalgam-';

/** Where an output will lie and where it is written until then. */
interface OutputPlace {
  /** Absolute; the target of the link where the folder asked for is one. */
  target: string;
  /** Path prefix of a new partial output: inside `target` where that exists, else beside it. */
  stem: string;
  /** The same for every place where an earlier run may have left one. */
  stems: string[];
}

/**
 * Looks at the folder asked for, before anything is computed. One that exists and is empty — a mount point, a link to
 * a folder — stays and is written into: it could not be replaced by a rename.
 * @throws DestinationNotEmpty, DestinationFailed for a link that leads nowhere
 */
export async function lookAtTarget(folder: string): Promise<OutputPlace> {
  const named = resolve(folder);
  const beside = join(dirname(named), `.${basename(named)}.amalgam-`);
  const link = await lstat(named).catch(() => undefined);
  if (!link) return { target: named, stem: beside, stems: [beside] };
  const target = await realpath(named).catch(() => undefined);
  if (target === undefined) {
    throw new AmalgamError(
      'DestinationFailed',
      `${folder} is a broken link.`,
      'Remove the link, or make the folder that it names; then merge again.',
    );
  }
  const inside = join(target, PARTIAL_INSIDE);
  return { target, stem: inside, stems: [inside, beside] };
}

/** @throws DestinationNotEmpty unless `target` is missing, empty, or holds nothing but what `found` is moving there */
export async function refuseNonEmpty(
  { target, stems }: OutputPlace,
  folder: string,
  found?: string,
): Promise<void> {
  const stats = await stat(target).catch(() => undefined);
  if (!stats) return;
  const moved = found === undefined ? [] : await readMoving(found);
  const own = new Set([...moved.map((path) => path.split('/')[0]!), basename(found ?? '')]);
  if (stats.isDirectory() && (await readdir(target)).every((name) => own.has(name))) return;
  throw new AmalgamError(
    'DestinationNotEmpty',
    `${folder} already exists and is not an empty folder.`,
    `Choose another --out, or move the existing one away; Amalgam never overwrites.${await leftoverWords(stems)}`,
  );
}

/** Takes back the files that an interrupted run had moved to `target`. */
export async function takeBack(partial: string, target: string): Promise<void> {
  for (const path of await readMoving(partial)) {
    if (await stat(join(partial, path)).catch(() => undefined)) continue;
    await rename(join(target, path), join(partial, path));
  }
  await rm(join(partial, MOVING), { force: true });
}

/**
 * Gives a whole partial output its name and makes that durable. Descriptive files come first, weights and their index
 * last, so that a folder cut off in between is no model.
 * @throws errors of the file system; the output is then in `partial`, in `target`, or partly in both
 */
export async function publish(partial: string, target: string, paths: readonly string[]): Promise<void> {
  await syncFolders(partial, paths);
  if (dirname(partial) === target) {
    // whole or not there: files are moved only when the list of them survives a power cut
    const list = join(partial, MOVING);
    await writeFile(`${list}.tmp`, JSON.stringify(paths), { flush: true });
    await rename(`${list}.tmp`, list);
    await syncFolder(partial);
    for (const path of publishOrder(paths)) {
      await mkdir(dirname(join(target, path)), { recursive: true });
      await rename(join(partial, path), join(target, path));
    }
    await syncFolders(target, paths);
    await rm(partial, { recursive: true });
    return;
  }
  const ofRun = [JOURNAL, OWNER] as const;
  for (const name of ofRun) await rename(join(partial, name), aside(partial, name)).catch(ignoreMissing);
  try {
    await rename(partial, target);
  } catch (thrown) {
    for (const name of ofRun) await rename(aside(partial, name), join(partial, name)).catch(ignoreMissing);
    throw thrown;
  }
  for (const name of ofRun) await rm(aside(partial, name), { force: true });
  await syncFolder(dirname(target));
}

/** Makes the names in a folder, and in every folder below it that holds one of `paths`, survive a power cut. */
async function syncFolders(folder: string, paths: readonly string[]): Promise<void> {
  const folders = new Set(['']);
  for (const path of paths) {
    for (let inside = dirname(path); inside !== '.'; inside = dirname(inside)) folders.add(inside);
  }
  for (const inside of folders) await syncFolder(join(folder, inside));
}

async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder; its file system makes names durable without that.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readMoving(partial: string): Promise<string[]> {
  const text = await readFile(join(partial, MOVING), 'utf8').catch(() => '[]');
  return listed(text).filter((path) => !relative(partial, join(partial, path)).startsWith('..'));
}

/** Paths in a list of files; none in a list that is torn: nothing was moved then. */
function listed(text: string): string[] {
  try {
    const paths: unknown = JSON.parse(text);
    return Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : [];
  } catch {
    return [];
  }
}
