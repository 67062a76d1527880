/** Files of the browser's own storage. For a dedicated worker: no other has such handles. */
import { contentOf, fileBelow, ifThere, removeFrom, syncAccess } from '../platform';
import { readWhole } from '../store/opfs-file';
import type { FileSink } from './destination';
import { destinationError, failing, shortFile, storageFull } from './destination-error';

/** Opens the file below `folder`, making folders and file; waits a moment for a lock that is about to go. */
export async function openHandle(
  folder: FileSystemDirectoryHandle,
  parts: readonly string[],
): Promise<FileSystemSyncAccessHandle> {
  return syncAccess(await fileBelow(folder, parts, true));
}

/**
 * Cuts off what is beyond the first `bytes` bytes. Every write is checked by its count, and at the end the file's size: a
 * full disk can show in a wrong count alone.
 * @throws StorageFull, DestinationFailed
 */
export function opfsSink(
  path: string,
  handle: FileSystemSyncAccessHandle,
  bytes: number,
  onClose: (bytes: number) => void = () => {},
): FileSink {
  checked(path, () => {
    // a full storage may ignore it without a word
    handle.truncate(bytes);
    if (handle.getSize() !== bytes) throw storageFull(path);
  });
  return {
    write: async (piece, at) => writeAt(path, handle, piece, at),
    flush: async () => checked(path, () => handle.flush()),
    async close(_, length) {
      try {
        checked(path, () => {
          handle.flush();
          const size = handle.getSize();
          if (size !== length) throw shortFile(path, length, size);
        });
      } finally {
        handle.close();
      }
      onClose(length);
    },
  };
}

/** @throws StorageFull, DestinationFailed */
export function writeAt(
  path: string,
  handle: FileSystemSyncAccessHandle,
  piece: Uint8Array<ArrayBuffer>,
  at: number,
): void {
  checked(path, () => {
    if (handle.write(piece, { at }) !== piece.byteLength) throw storageFull(path);
  });
}

function checked(path: string, act: () => void): void {
  try {
    act();
  } catch (thrown) {
    throw destinationError(thrown, path);
  }
}

/** The content of a file, or nothing where there is none. */
export async function readStored(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<Uint8Array<ArrayBuffer>> {
  return (await readWhole(folder, name, name)) ?? new Uint8Array(0);
}

/** A file below `folder`; undefined when it, or a folder on the way, is not there. */
export function findFile(
  folder: FileSystemDirectoryHandle,
  parts: readonly string[],
): Promise<File | undefined> {
  return ifThere(fileBelow(folder, parts).then(contentOf));
}

/**
 * A journal file that is open for as long as its run.
 * @param output whose run, for messages: the user knows of no journal
 */
export function openJournal(folder: FileSystemDirectoryHandle, name: string, output: string) {
  let handle: FileSystemSyncAccessHandle | undefined;
  return {
    read: () => readStored(folder, name),
    /** Appends to the first `at` bytes. @throws StorageFull, DestinationFailed */
    async append(at: number, line: Uint8Array<ArrayBuffer>): Promise<void> {
      handle ??= await openHandle(folder, [name]).catch(failing(output));
      const sink = opfsSink(output, handle, at);
      await sink.write(line, at);
      await sink.flush!();
    },
    close(): void {
      handle?.close();
      handle = undefined;
    },
    async remove(): Promise<void> {
      this.close();
      await ifThere(removeFrom(folder, name)).catch(failing(name));
    },
  };
}
