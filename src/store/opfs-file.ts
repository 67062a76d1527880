import { AmalgamError, isDomException } from '../errors';
import { counted } from '../formats/quantity';
import {
  bytesOf,
  contentOf,
  fileIn,
  folderIn,
  ifThere,
  removeFrom,
  storageRoot,
  syncAccess,
} from '../platform';

/** Times that a small file is read while its writer changes it. */
const TRIES = 20;
const WAIT_MS = 50;

/**
 * The top folder `name` of the browser's storage, made when it is not there.
 * @throws StorageUnavailable where the browser has no such storage or does not allow it, StorageFull.
 */
export async function storageFolder(name: string): Promise<FileSystemDirectoryHandle> {
  try {
    return await folderIn(await storageRoot(), name, true);
  } catch (cause) {
    if (cause instanceof AmalgamError) throw cause;
    if (isDomException(cause, 'QuotaExceededError')) throw storageFull('one more folder', cause);
    throw new AmalgamError(
      'StorageUnavailable',
      'This page cannot use the storage of the browser.',
      'Open Amalgam in a normal window (not a private one) over https or on localhost, and allow it to keep data.',
      { cause },
    );
  }
}

/**
 * One open file of the browser's storage, for a dedicated worker. Every count is checked, because a full storage may
 * show as nothing but a wrong count: Chromium in a private window returns 4294967288 (−8) from `write` and ignores
 * `truncate`, without an exception. Close it in `finally`.
 */
export class OpfsFile {
  readonly #handle: FileSystemSyncAccessHandle;
  /** As a user knows the file; for messages. */
  readonly #what: string;

  constructor(handle: FileSystemSyncAccessHandle, what: string) {
    this.#handle = handle;
    this.#what = what;
  }

  /** Whether other threads can read it meanwhile. */
  get isShared(): boolean {
    return this.#handle.mode === 'read-only';
  }

  size(): number {
    return this.#try(() => this.#handle.getSize());
  }

  /**
   * Bytes `[begin, end)`, in `bytes` where it is given.
   * @throws StorageFailed when the file is shorter.
   */
  read(begin: number, end: number, bytes = new Uint8Array(end - begin)): Uint8Array<ArrayBuffer> {
    const count = this.#try(() => this.#handle.read(bytes, { at: begin }));
    if (count === bytes.length) return bytes;
    throw new AmalgamError(
      'StorageFailed',
      `${this.#what} gave ${counted(count, 'byte')} where ${bytes.length} were stored.`,
      'Delete it from the cache and start again.',
    );
  }

  /** Writes all of `bytes` at offset `at`. @throws StorageFull or StorageFailed unless all of it is in the file. */
  writeAll(bytes: Uint8Array<ArrayBuffer>, at: number): void {
    const count = this.#try(() => this.#handle.write(bytes, { at }));
    if (count !== bytes.length) throw storageFull(this.#what);
    const size = this.size();
    if (size >= at + bytes.length) return;
    throw new AmalgamError(
      'StorageFailed',
      `${this.#what} has ${counted(size, 'byte')} after ${at + bytes.length} were written.`,
      'The disk may be full. Free some space and start again.',
    );
  }

  /** Makes the file exactly `size` bytes long. @throws StorageFull when there is no room. */
  resize(size: number): void {
    this.#try(() => this.#handle.truncate(size));
    if (this.size() !== size) throw storageFull(this.#what);
  }

  /** Asks for everything written to be on the disk before it returns. */
  flush(): void {
    this.#try(() => this.#handle.flush());
  }

  close(): void {
    this.#handle.close();
  }

  #try<T>(action: () => T): T {
    try {
      return action();
    } catch (thrown) {
      throw storageError(thrown, this.#what);
    }
  }
}

/**
 * Opens `name` in `folder`, for one writer, or for any number of readers where the browser has that mode; a lock that
 * is about to go away is waited for.
 * @throws Busy when another worker has the file open; StorageFailed and StorageFull.
 */
export async function openOpfsFile(
  folder: FileSystemDirectoryHandle,
  name: string,
  what: string,
  mode: 'create' | 'read-only',
): Promise<OpfsFile> {
  return fileIn(folder, name, mode === 'create')
    .then((file) => syncAccess(file, mode === 'create' ? 'readwrite' : mode))
    .then((handle) => new OpfsFile(handle, what))
    .catch(failing(what));
}

/** Replaces the content of a small file and has it on the disk when it returns. */
export async function writeWhole(
  folder: FileSystemDirectoryHandle,
  name: string,
  bytes: Uint8Array<ArrayBuffer>,
  what: string,
): Promise<void> {
  const file = await openOpfsFile(folder, name, what, 'create');
  try {
    file.resize(bytes.length);
    file.writeAll(bytes, 0);
    file.flush();
  } finally {
    file.close();
  }
}

/**
 * Content of a small file, without taking a lock; undefined when there is none. A file that its writer changes just
 * then cannot be read by the browser, and is tried again.
 */
export async function readWhole(
  folder: FileSystemDirectoryHandle,
  name: string,
  what: string,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  for (let tried = 1; ; tried++) {
    try {
      return await ifThere(fileIn(folder, name).then(contentOf).then(bytesOf));
    } catch (thrown) {
      if (!isDomException(thrown, 'NotReadableError') || tried === TRIES) throw storageError(thrown, what);
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
  }
}

/** Removes a file or a folder with all it holds; nothing happens when it is not there. */
export async function removeStored(
  folder: FileSystemDirectoryHandle,
  name: string,
  what: string,
): Promise<void> {
  await ifThere(removeFrom(folder, name, { recursive: true })).catch(failing(what));
}

export function isFolder(handle: FileSystemHandle): handle is FileSystemDirectoryHandle {
  return handle.kind === 'directory';
}

/**
 * Error of the browser's storage, in words.
 * @param what the stored thing at work, as the user knows it.
 */
export function storageError(thrown: unknown, what: string): AmalgamError {
  if (thrown instanceof AmalgamError) return thrown;
  const name = thrown instanceof Error ? thrown.name : '';
  switch (name) {
    case 'QuotaExceededError':
      return storageFull(what, thrown);
    case 'NotFoundError':
      return new AmalgamError(
        'StorageFailed',
        `${what} is gone: the browser's storage was cleared while Amalgam was using it.`,
        'Start again; what is missing is downloaded again.',
        { cause: thrown },
      );
    case 'NoModificationAllowedError':
      return new AmalgamError(
        'Busy',
        `${what} is in use, here or in another tab.`,
        'Wait until it is finished, or close the other tab.',
        { cause: thrown },
      );
    default:
      return new AmalgamError(
        'StorageFailed',
        `The browser's storage failed for ${what} (${thrown instanceof Error ? `${name}: ${thrown.message}` : thrown}).`,
        'Check that the disk has free space, reload the page and start again.',
        { cause: thrown },
      );
  }
}

/** For `catch`: throws {@link storageError} of what was thrown. */
export const failing =
  (what: string) =>
  (thrown: unknown): never => {
    throw storageError(thrown, what);
  };

/** There is no room for `what`. */
function storageFull(what: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'StorageFull',
    `The browser's storage has no room for ${what}.`,
    'Delete models from the cache or free disk space, then go on. Private windows have little room: use a normal one.',
    { cause },
  );
}
