import { isDomException } from '../errors';
import {
  contentOf,
  entriesOf,
  fileBelow,
  fileIn,
  folderIn,
  ifThere,
  removeFrom,
  rooted,
  writableOf,
} from '../platform';
import { fileSource } from '../sources/file-source';
import type { Destination, FileSink, Remains } from './destination';
import { destinationError, notEmpty, outputName, outputPathParts, shortFile } from './destination-error';
import { type FolderJournal, foundFolderJournal, MARKER, newFolderJournal } from './folder-journals';
import { findFile } from './opfs-sink';

/**
 * An output folder inside a folder that the user picked. Files are written by `createWritable`, which writes beside
 * the final name and swaps on close: a file under its final name is whole, or empty where it was begun and cut off. A
 * swap file cannot be continued, so a cut-off merge goes on at a shard. Its journal is in the browser's own storage;
 * where there is none, nothing can be resumed.
 *
 * @param parent the picked folder, with permission to write
 * @param name of the new folder inside it
 * @param resume goes on with what a cut-off merge of that name left in there
 * @throws DestinationNotEmpty when `name` exists with something in it, UnsafePath, DestinationFailed, also when there is
 *   nothing to resume
 */
export async function openFolderDestination(
  parent: FileSystemDirectoryHandle,
  name: string,
  resume = false,
): Promise<Destination> {
  outputName(name);
  const { folder, isNew } = await claimFolder(parent, name, resume);
  const journal = resume ? await foundFolderJournal(folder, name) : await newFolderJournal(folder, name);
  if (resume) await cleanSwapFiles(folder);
  const files = new Map<string, { handle: FileSystemFileHandle; bytes: number; isWhole: boolean }>();
  /** Sub-folders of the output, outermost first. */
  const folders: { parent: FileSystemDirectoryHandle; name: string }[] = [];
  const open = new Set<FileSystemWritableFileStream>();
  let isCommitted = false;

  async function create(path: string): Promise<FileSink> {
    const parts = outputPathParts(path);
    const fileName = parts.pop()!;
    if (files.has(path)) throw destinationError('it is already begun', path);
    try {
      let inside = folder;
      for (const part of parts) {
        const known = await ifThere(folderIn(inside, part));
        if (!known) folders.push({ parent: inside, name: part });
        inside = known ?? (await folderIn(inside, part, true));
      }
      const handle = await fileIn(inside, fileName, true);
      const file = { handle, bytes: 0, isWhole: false };
      files.set(path, file);
      const stream = await writableOf(handle);
      open.add(stream);
      return {
        async write(data, position) {
          try {
            await rooted(stream, stream.write({ type: 'write', data, position }));
          } catch (thrown) {
            throw destinationError(thrown, path);
          }
        },
        async close(_, length) {
          try {
            file.bytes = length;
            await rooted(stream, stream.close());
            open.delete(stream);
            await verify(path, handle, file.bytes);
            file.isWhole = true;
          } catch (thrown) {
            throw destinationError(thrown, path);
          }
        },
      };
    } catch (thrown) {
      throw destinationError(thrown, path);
    }
  }

  async function abortAll(): Promise<void> {
    await Promise.all([...open].map((stream) => rooted(stream, stream.abort()).catch(ignoreClosed)));
    open.clear();
  }

  return {
    create,
    async commit() {
      for (const [path, { handle, bytes, isWhole }] of files) {
        if (!isWhole) throw destinationError('it was not finished', path);
        try {
          await verify(path, handle, bytes);
        } catch (thrown) {
          throw destinationError(thrown, path);
        }
      }
      isCommitted = true;
      await journal?.remove();
    },
    async discard() {
      if (isCommitted) return;
      try {
        await abortAll();
        await journal?.remove();
        for (const path of [...files.keys()].reverse()) await removeFile(folder, path);
        files.clear();
        for (const sub of folders.splice(0).reverse()) await removeEntry(sub.parent, sub.name);
        if (isNew || resume) await removeEntry(parent, name);
      } catch (thrown) {
        throw destinationError(thrown, name);
      }
    },
    async left(path) {
      const file = await findFile(folder, outputPathParts(path));
      return file && fileSource(file, path);
    },
    ...(journal ? { remains: remainsOf(journal) } : {}),
  };

  function remainsOf(kept: FolderJournal): Remains {
    return {
      readJournal: () => kept.read(),
      appendJournal: (at, line) => kept.append(at, line),
      async adopt(path, bytes) {
        const handle = await fileBelow(folder, outputPathParts(path));
        files.set(path, { handle, bytes, isWhole: true });
      },
      async keep() {
        if (isCommitted) return;
        await abortAll();
        kept.close();
      },
    };
  }
}

/** Removes what a killed browser leaves of files that were being written: swap files, and the empty file of that name. */
async function cleanSwapFiles(folder: FileSystemDirectoryHandle): Promise<void> {
  const left: string[] = [];
  for (const [, handle] of await entriesOf(folder)) {
    if (handle.kind === 'directory') continue;
    const { size } = await contentOf(handle as FileSystemFileHandle);
    const isBegun = handle.name.endsWith('.safetensors') && size === 0;
    if (handle.name.endsWith('.crswap') || isBegun) left.push(handle.name);
  }
  for (const name of left) await removeEntry(folder, name);
}

/** The empty folder `name`, made unless it is there already; when resuming it has something in it. */
async function claimFolder(parent: FileSystemDirectoryHandle, name: string, resume: boolean) {
  try {
    const existing = await ifThere(folderIn(parent, name));
    if (!existing && resume) throw new DOMException(name, 'NotFoundError');
    if (!existing) return { folder: await folderIn(parent, name, true), isNew: true };
    if (resume) return { folder: existing, isNew: false };
    // a merge that was cut off before its first file leaves its mark
    for (const [key] of await entriesOf(existing)) if (!key.startsWith(MARKER)) throw notEmpty(name);
    return { folder: existing, isNew: false };
  } catch (thrown) {
    // A plain file of that name.
    if (isDomException(thrown, 'TypeMismatchError')) throw notEmpty(name);
    throw destinationError(thrown, name);
  }
}

/** Opens the closed file again and compares its size with what was written. */
async function verify(path: string, handle: FileSystemFileHandle, bytes: number): Promise<void> {
  const { size } = await contentOf(handle);
  if (size !== bytes) throw shortFile(path, bytes, size);
}

async function removeFile(folder: FileSystemDirectoryHandle, path: string): Promise<void> {
  const parts = path.split('/');
  const fileName = parts.pop()!;
  let inside: FileSystemDirectoryHandle | undefined = folder;
  for (const part of parts) inside = inside && (await ifThere(folderIn(inside, part)));
  if (inside) await removeEntry(inside, fileName);
}

/** Removes a file or an empty folder; one that is gone already is fine, and so is a folder with foreign files. */
async function removeEntry(parent: FileSystemDirectoryHandle, name: string): Promise<void> {
  try {
    await removeFrom(parent, name);
  } catch (thrown) {
    if (isDomException(thrown, 'NotFoundError') || isDomException(thrown, 'InvalidModificationError')) return;
    throw thrown;
  }
}

/** A stream that already failed or closed cannot be aborted, and need not be. */
function ignoreClosed(thrown: unknown): void {
  if (!(thrown instanceof TypeError) && !(thrown instanceof DOMException)) throw thrown;
}
