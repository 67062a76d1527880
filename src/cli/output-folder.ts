import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AmalgamError } from '../errors';
import { safeRelativePath } from '../formats/names';

/**
 * An output folder in the making: a hidden sibling of the folder asked for, which takes its name only on `commit`.
 */
export interface OutputFolder {
  /**
   * Appends to a file; the first piece of a file creates it.
   * @param offset must be the file's size so far
   * @returns the size after it
   * @throws UnsafePath, DestinationFailed for a wrong offset, StorageFull
   */
  append(path: string, offset: number, body: AsyncIterable<Uint8Array>): Promise<number>;
  /** Makes everything durable and gives the folder its name. @throws DestinationFailed when a size differs. */
  commit(files: { path: string; size: number }[]): Promise<void>;
  /** Removes everything, unless committed. Safe to call twice. */
  discard(): Promise<void>;
  readonly isCommitted: boolean;
}

/** @throws DestinationNotEmpty when `folder` exists with something in it, DestinationFailed when it cannot be made. */
export async function beginOutputFolder(folder: string): Promise<OutputFolder> {
  const target = resolve(folder);
  const parent = dirname(target);
  await refuseNonEmpty(target, folder);
  const temporary = join(parent, `.${basename(target)}.amalgam-${randomBytes(4).toString('hex')}`);
  const outermost = await inWords(folder, async () => {
    const made = await mkdir(parent, { recursive: true });
    await mkdir(temporary);
    return made;
  });
  const sizes = new Map<string, number>();
  let isCommitted = false;

  return {
    get isCommitted() {
      return isCommitted;
    },
    async append(path, offset, body) {
      safeRelativePath(path);
      const size = sizes.get(path);
      if (offset !== (size ?? 0)) throw failed(`${path} goes on at byte ${size ?? 0}, not at ${offset}.`);
      const location = join(temporary, path);
      return inWords(path, async () => {
        await mkdir(dirname(location), { recursive: true });
        const file = await open(location, size === undefined ? 'wx' : 'r+');
        try {
          let at = offset;
          for await (const piece of body) {
            for (let begin = 0; begin < piece.byteLength; ) {
              const { bytesWritten } = await file.write(piece, begin, piece.byteLength - begin, at);
              begin += bytesWritten;
              at += bytesWritten;
            }
          }
          sizes.set(path, at);
          return at;
        } finally {
          await file.close();
        }
      });
    },
    async commit(files) {
      const told = new Map(files.map(({ path, size }) => [path, size]));
      for (const [path, size] of sizes) {
        if (told.get(path) !== size)
          throw failed(`${path} has ${size} bytes here, ${told.get(path) ?? 'none'} there.`);
      }
      if (told.size !== sizes.size) throw failed(`${told.size} files were sent, but ${sizes.size} came.`);
      await inWords(folder, async () => {
        for (const [path, size] of sizes) await makeDurable(join(temporary, path), path, size);
        await refuseNonEmpty(target, folder);
        await rmdir(target).catch(ignoreMissing);
        await rename(temporary, target);
      });
      isCommitted = true;
    },
    async discard() {
      if (isCommitted) return;
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
