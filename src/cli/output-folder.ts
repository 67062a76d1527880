import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { mkdir, open, rm, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { safeRelativePath } from '../formats/names';
import { counted, formatBytes } from '../formats/quantity';
import { release } from '../host/node/locks';
import { makeFolders, openFile } from '../host/node/storage';
import { destinationError } from '../write/destination-error';
import type { Place } from './arguments';
import { type ListedFile, listFolder } from './folder-listing';
import {
  claimPartial,
  cleanPartials,
  findPartial,
  JOURNAL,
  leftoverWords,
  lookAtTarget,
  OWNER,
  publish,
  refuseNonEmpty,
  takeBack,
} from './partial-output';

/**
 * An output folder in the making: a hidden folder beside the one asked for, or inside where that exists, which takes
 * its name only on `commit`.
 */
export interface OutputFolder {
  /**
   * Begins a file, or goes on with one after its first `kept` bytes; what is beyond them goes.
   * @returns where it is to be written
   * @throws UnsafePath, DestinationFailed when the file is not that long
   */
  begin(path: string, kept: number): Promise<string>;
  /** Writes on after the first `offset` bytes of the run's journal, which is no part of the output. @throws as `begin`, StorageFull */
  appendJournal(offset: number, line: Uint8Array): Promise<void>;
  /** A stored file, or the journal; undefined when there is none. */
  find(path: string | 'journal'): Promise<ListedFile | undefined>;
  /** Sentence about output that interrupted merges left beside this one; empty when there is none. */
  leftBefore(): Promise<string>;
  /** @throws StorageFull when so many bytes more do not fit on the disk */
  checkRoom(bytes: number): Promise<void>;
  /** Leaves everything for a later run to resume, where it was begun to be; returns the folder it lies in. */
  keep(): string;
  /**
   * Makes everything durable and gives the folder its name. Where that fails, what was written stays.
   * @throws DestinationFailed when a size differs, or saying where the output lies when it got no name
   */
  commit(files: { path: string; size: number }[]): Promise<void>;
  /** Removes everything, unless it is committed, left to be resumed, or whole without its name. Safe to call twice. */
  discard(): Promise<void>;
  readonly isCommitted: boolean;
}

/** Begins the folder that a verb writes, which goes again unless it is committed. @throws what beginning it throws */
export async function openOutput(name: string, { workingFolder, undo, say }: Place, resume = false) {
  const folder = resolve(workingFolder, name);
  const output = await beginOutputFolder(folder, resume);
  undo.push(() => output.discard());
  if (!resume) {
    const left = await output.leftBefore();
    if (left !== '') say(left);
  }
  return { folder, output };
}

/** Sees that a job left its folder. */
export function requireCommitted({ isCommitted }: OutputFolder): void {
  if (isCommitted) return;
  throw new AmalgamError('Internal', 'The job ended without an output folder.', 'Please report this.');
}

/**
 * @param resume goes on in the folder that an interrupted run left, where there is one
 * @throws DestinationNotEmpty when `folder` exists with something in it, DestinationFailed when it cannot be made, Busy
 *   when the run to be resumed is still going
 */
export async function beginOutputFolder(folder: string, resume = false): Promise<OutputFolder> {
  const place = await lookAtTarget(folder);
  const { target, stem, stems } = place;
  await cleanPartials(stems);
  const found = resume ? await findPartial(stems) : undefined;
  await refuseNonEmpty(place, folder, found);
  const temporary = found ?? `${stem}${randomBytes(4).toString('hex')}`;
  const parent = dirname(temporary);
  const outermost = await inWords(folder, async () => {
    const made = makeFolders(parent);
    if (!found) await mkdir(temporary);
    await claimPartial(temporary);
    if (found) await takeBack(found, target);
    return made;
  });
  /** Files of an interrupted run that this one has not touched. */
  const left = found ? (await listFolder(found)).files : new Map<string, ListedFile>();
  /** Files that this one has begun. */
  const begun = new Set<string>();
  /** How files were when they were read back. */
  const seen = new Map<string, string>();
  let isCommitted = false;
  let isKept = false;
  let committing: Promise<void> | undefined;

  async function begin(location: string, path: string, kept: number): Promise<string> {
    await inWords(path, async () => {
      await mkdir(dirname(location), { recursive: true });
      const file = await open(location, kept === 0 ? 'w' : 'r+');
      try {
        const { size } = await file.stat();
        if (size < kept) throw failed(`${path} goes on at byte ${size}, not at ${kept}.`);
        await file.truncate(kept);
      } finally {
        await file.close();
      }
    });
    return location;
  }

  async function commit(files: { path: string; size: number }[]): Promise<void> {
    const told = new Map(files.map(({ path, size }) => [path, size]));
    for (const [path, { size }] of left) if (told.get(path) === size) begun.add(path);
    if (told.size !== begun.size || [...told.keys()].some((path) => !begun.has(path)))
      throw failed(`${counted(told.size, 'file')} are told of, but ${begun.size} were begun.`);
    await inWords(folder, async () => {
      for (const [path, size] of told) await makeDurable(join(temporary, path), path, size, seen.get(path));
      for (const path of left.keys()) if (!told.has(path)) await rm(join(temporary, path));
    });
    const refuseTaken = () => refuseNonEmpty(place, folder, parent === target ? temporary : undefined);
    try {
      await refuseTaken();
      await publish(temporary, target, [...told.keys()]).catch(async (thrown: NodeJS.ErrnoException) => {
        // another process has taken the name since
        if (thrown.code === 'ENOTEMPTY' || thrown.code === 'EEXIST') await refuseTaken();
        throw thrown;
      });
    } catch (thrown) {
      isKept = true;
      const isNamed = !(await stat(temporary).catch(() => undefined));
      throw new AmalgamError(
        'DestinationFailed',
        `The output is complete, but ${isNamed ? 'its name may not survive a power cut' : 'could not be renamed'}: ${(thrown as Error).message} It is in ${isNamed ? target : temporary}.`,
        isNamed
          ? 'Nothing needs to be done, unless this machine loses power now.'
          : isTaken(thrown)
            ? 'Something else was written there meanwhile: remove the one you do not want.'
            : 'Move it from there, or fix the cause and run the same command with --resume.',
        { cause: thrown },
      );
    }
    isCommitted = true;
  }

  return {
    get isCommitted() {
      return isCommitted;
    },
    async begin(path, kept) {
      const location = join(temporary, safeRelativePath(path));
      await begin(location, path, kept);
      begun.add(path);
      seen.delete(path);
      left.delete(path);
      return location;
    },
    async appendJournal(offset, line) {
      const what = 'the journal';
      const file = openFile(await begin(join(temporary, JOURNAL), what, offset));
      try {
        await inWords(what, async () => file.write(line as Uint8Array<ArrayBuffer>, { at: offset }));
      } finally {
        file.close();
      }
    },
    async find(path) {
      const location = join(temporary, path === 'journal' ? JOURNAL : safeRelativePath(path));
      const stats = await stat(location, { bigint: true }).catch(() => undefined);
      if (!stats?.isFile()) return undefined;
      seen.set(path, identityOf(stats));
      return { path, size: Number(stats.size), location };
    },
    leftBefore: async () => (await leftoverWords(stems, temporary)).trim(),
    async checkRoom(bytes) {
      const { bavail, bsize } = await inWords(folder, () => statfs(parent));
      const already = [...left.values()].reduce((sum, { size }) => sum + size, 0);
      if (bavail * bsize + already >= bytes) return;
      throw new AmalgamError(
        'StorageFull',
        `${folder} needs ${formatBytes(bytes)}, but its disk has ${formatBytes(bavail * bsize)} left.`,
        `Free some space, or give --out on another disk.${await leftoverWords(stems, temporary)}`,
      );
    },
    keep() {
      isKept ||= resume;
      return temporary;
    },
    commit(files) {
      committing = commit(files);
      return committing;
    },
    async discard() {
      // an interrupt may come in the middle of it
      await committing?.catch(() => undefined);
      release(join(temporary, OWNER));
      if (isCommitted || isKept) return;
      // a thread that has not ended yet may still make a file in it
      await rm(temporary, { recursive: true, force: true, maxRetries: 10 });
      // Parents that only this output needed go too, from the inside out, as long as they are empty.
      if (outermost === undefined) return;
      for (let made = parent; made.length >= outermost.length; made = dirname(made)) {
        if (
          !(await rmdir(made).then(
            () => true,
            () => false,
          ))
        )
          return;
      }
    },
  };
}

const isTaken = (thrown: unknown) => thrown instanceof AmalgamError && thrown.code === 'DestinationNotEmpty';

function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}

/** @param seen state of the file when it was read back */
async function makeDurable(location: string, path: string, size: number, seen?: string): Promise<void> {
  const file = await open(location, 'r+');
  try {
    await file.sync();
    const actual = (await file.stat()).size;
    if (actual !== size) throw failed(`${path} should have ${counted(size, 'byte')} but has ${actual}.`);
    if (seen === undefined || seen === identityOf(await stat(location, { bigint: true }))) return;
    throw new AmalgamError(
      'IntegrityError',
      `${path} was changed by somebody else after it was written and checked.`,
      'Find out what writes there, then merge again.',
    );
  } finally {
    await file.close();
  }
}

/** Node's file errors in words. */
async function inWords<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (thrown) {
    throw destinationError(thrown, what);
  }
}

function failed(message: string, cause?: unknown): AmalgamError {
  const hint = 'Check the path, its permissions and its disk, then merge again.';
  return new AmalgamError('DestinationFailed', message, hint, { cause });
}
