import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { safeRelativePath } from '../formats/names';
import { claimPartial, findPartial, JOURNAL, OWNER } from './partial-output';
import { listFolder, type ServedFile } from './served-folder';

/**
 * An output folder in the making: a hidden sibling of the folder asked for, which takes its name only on `commit`.
 */
export interface OutputFolder {
  /**
   * Writes on after the first `offset` bytes of a file; what is beyond them goes. The first piece creates the file.
   * @returns the size after it
   * @throws UnsafePath, DestinationFailed when the file is not that long, StorageFull
   */
  append(path: string, offset: number, body: AsyncIterable<Uint8Array>): Promise<number>;
  /** The same for the run's journal, which is no part of the output. */
  appendJournal(offset: number, body: AsyncIterable<Uint8Array>): Promise<number>;
  /** A file as it is, or the journal; undefined when there is none. */
  find(path: string | 'journal'): Promise<ServedFile | undefined>;
  /** Leaves everything for a later run to resume. */
  keep(): void;
  /** Makes everything durable and gives the folder its name. @throws DestinationFailed when a size differs. */
  commit(files: { path: string; size: number }[]): Promise<void>;
  /** Removes everything, unless committed or kept. Safe to call twice. */
  discard(): Promise<void>;
  readonly isCommitted: boolean;
}

/**
 * @param resume goes on in the folder that an interrupted run left, where there is one
 * @throws DestinationNotEmpty when `folder` exists with something in it, DestinationFailed when it cannot be made, Busy
 *   when the run to be resumed is still going
 */
export async function beginOutputFolder(folder: string, resume = false): Promise<OutputFolder> {
  const target = resolve(folder);
  const parent = dirname(target);
  await refuseNonEmpty(target, folder);
  const found = resume ? await findPartial(target) : undefined;
  const temporary = found ?? join(parent, `.${basename(target)}.amalgam-${randomBytes(4).toString('hex')}`);
  const outermost = await inWords(folder, async () => {
    const made = await mkdir(parent, { recursive: true });
    if (!found) await mkdir(temporary);
    await claimPartial(temporary);
    return made;
  });
  /** Files of an interrupted run that this one has not touched. */
  const left = found ? await listFolder(found) : new Map<string, ServedFile>();
  const sizes = new Map<string, number>();
  let isCommitted = false;
  let isKept = false;

  async function write(location: string, offset: number, body: AsyncIterable<Uint8Array>): Promise<number> {
    await mkdir(dirname(location), { recursive: true });
    const file = await open(location, offset === 0 ? 'w' : 'r+');
    try {
      await file.truncate(offset);
      let at = offset;
      for await (const piece of body) {
        for (let begin = 0; begin < piece.byteLength; ) {
          const { bytesWritten } = await file.write(piece, begin, piece.byteLength - begin, at);
          begin += bytesWritten;
          at += bytesWritten;
        }
      }
      return at;
    } finally {
      await file.close();
    }
  }

  return {
    get isCommitted() {
      return isCommitted;
    },
    async append(path, offset, body) {
      safeRelativePath(path);
      const size = sizes.get(path) ?? left.get(path)?.size ?? 0;
      if (offset > size) throw failed(`${path} goes on at byte ${size}, not at ${offset}.`);
      const end = await inWords(path, () => write(join(temporary, path), offset, body));
      sizes.set(path, end);
      left.delete(path);
      return end;
    },
    appendJournal: (offset, body) =>
      inWords('the journal', () => write(join(temporary, JOURNAL), offset, body)),
    async find(path) {
      const location = join(temporary, path === 'journal' ? JOURNAL : safeRelativePath(path));
      const stats = await stat(location).catch(() => undefined);
      return stats?.isFile() ? { path, size: stats.size, location } : undefined;
    },
    keep() {
      isKept = true;
    },
    async commit(files) {
      const told = new Map(files.map(({ path, size }) => [path, size]));
      for (const [path, { size }] of left) if (told.get(path) === size) sizes.set(path, size);
      for (const [path, size] of sizes) {
        if (told.get(path) !== size)
          throw failed(`${path} has ${size} bytes here, ${told.get(path) ?? 'none'} there.`);
      }
      if (told.size !== sizes.size) throw failed(`${told.size} files were sent, but ${sizes.size} came.`);
      await inWords(folder, async () => {
        for (const [path, size] of sizes) await makeDurable(join(temporary, path), path, size);
        for (const path of left.keys()) if (!told.has(path)) await rm(join(temporary, path));
        for (const path of [JOURNAL, OWNER]) await rm(join(temporary, path), { force: true });
        await refuseNonEmpty(target, folder);
        await rmdir(target).catch(ignoreMissing);
        await rename(temporary, target);
      });
      isCommitted = true;
    },
    async discard() {
      if (isCommitted) return;
      if (isKept) return rm(join(temporary, OWNER), { force: true });
      await rm(temporary, { recursive: true, force: true });
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

async function makeDurable(location: string, path: string, size: number): Promise<void> {
  const file = await open(location, 'r+');
  try {
    await file.sync();
    const actual = (await file.stat()).size;
    if (actual !== size) throw failed(`${path} should have ${size} bytes but has ${actual}.`);
  } finally {
    await file.close();
  }
}

async function refuseNonEmpty(target: string, folder: string): Promise<void> {
  const stats = await stat(target).catch(() => undefined);
  if (!stats || (stats.isDirectory() && (await readdir(target)).length === 0)) return;
  throw new AmalgamError(
    'DestinationNotEmpty',
    `${folder} already exists and is not an empty folder.`,
    'Choose another --out, or move the existing one away; Amalgam never overwrites.',
  );
}

function ignoreMissing(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== 'ENOENT') throw thrown;
}

/** Node's file errors in words. */
async function inWords<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (thrown) {
    if (thrown instanceof AmalgamError) throw thrown;
    const { code, message } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      throw new AmalgamError(
        'StorageFull',
        `The disk is full at ${what}.`,
        'Free some space and merge again.',
        {
          cause: thrown,
        },
      );
    }
    throw failed(`${what} could not be written: ${message}.`, thrown);
  }
}

function failed(message: string, cause?: unknown): AmalgamError {
  const hint = 'Check the path, its permissions and its disk, then merge again.';
  return new AmalgamError('DestinationFailed', message, hint, { cause });
}
