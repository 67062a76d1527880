/**
 * Stands in for the browser's storage where a page is given none: a private window, a web view, blocked site data. Files
 * are in the memory of this worker, up to a bound, and gone with it.
 */

import { fileIn, removeFrom, storageRoot, syncAccess } from '../platform';

/** Capacity in bytes for all files, downloads and results together: what any tab of any browser can hold. */
export const MEMORY_BYTES = 2 ** 30;

/** Memory is taken by pages as they are written: a file may be made long before it is filled. */
const PAGE = 2 ** 20;

interface MemoryFile {
  pages: Map<number, Uint8Array<ArrayBuffer>>;
  size: number;
  /** The content as it was last asked for. */
  snapshot?: File;
}
type MemoryFolder = Map<string, MemoryFile | MemoryFolder>;

/** Free space that all files of one storage share. */
interface Room {
  left: number;
}

let tried: Promise<number | undefined> | undefined;

/**
 * Finds out whether this worker has storage; where it has none, memory takes its place from here on.
 * @returns the bytes that fit into memory, or undefined where the browser has storage
 */
export function ensureStorage(): Promise<number | undefined> {
  if (navigator.locks === undefined)
    Object.defineProperty(navigator, 'locks', { value: memoryLocks(), configurable: true });
  tried ??= keepsFiles().then((does) => {
    if (does) return undefined;
    const root = memoryStorage(MEMORY_BYTES);
    const storage = { getDirectory: async () => root };
    Object.defineProperty(navigator, 'storage', { value: storage, configurable: true });
    return MEMORY_BYTES;
  });
  return tried;
}

type LockAct = (lock: object | null) => unknown;

/** Web Locks of this worker alone, where the browser has none; what is shared there is exclusive here. */
export function memoryLocks(): Pick<LockManager, 'request' | 'query'> {
  const last = new Map<string, Promise<unknown>>();
  const request = async (name: string, options: LockOptions | LockAct, given?: LockAct): Promise<unknown> => {
    const act = (given ?? options) as LockAct;
    const { ifAvailable, signal }: LockOptions = given ? (options as LockOptions) : {};
    signal?.throwIfAborted();
    const before = last.get(name);
    if (before && ifAvailable) return act(null);
    let isGone = false;
    const running = (async () => {
      await before;
      if (!isGone) return act({ name });
    })();
    const settled = running.catch(() => undefined);
    last.set(name, settled);
    void settled.then(() => last.get(name) === settled && last.delete(name));
    if (!signal || !before) return running;
    // who waits may leave; his place in the row stays
    return new Promise((resolve, reject) => {
      const leave = () => {
        isGone = true;
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      void before.then(() => signal.removeEventListener('abort', leave));
      running.then(resolve, reject);
    });
  };
  return {
    request: request as LockManager['request'],
    query: async () => ({ held: [...last.keys()].map((name) => ({ name })), pending: [] }),
  };
}

/** A browser may have folders, and no files that a worker can write. */
async function keepsFiles(): Promise<boolean> {
  const name = `probe-${crypto.randomUUID()}`;
  try {
    const root = await storageRoot();
    (await syncAccess(await fileIn(root, name, true), 'readwrite', 0)).close();
    await removeFrom(root, name);
    return true;
  } catch (thrown) {
    // storage that is full is storage
    return thrown instanceof DOMException && thrown.name === 'QuotaExceededError';
  }
}

/** An empty folder in memory whose files have room for `bytes` bytes. */
export function memoryStorage(bytes: number): FileSystemDirectoryHandle {
  return folderHandle('', new Map(), { left: bytes });
}

function folderHandle(name: string, folder: MemoryFolder, room: Room): FileSystemDirectoryHandle {
  const handleOf = (child: string, entry: MemoryFile | MemoryFolder) =>
    entry instanceof Map ? folderHandle(child, entry, room) : fileHandle(child, entry, room);
  const find = <T>(child: string, create: boolean, is: (entry: unknown) => entry is T, make: () => T): T => {
    const entry = folder.get(child);
    if (entry !== undefined && !is(entry)) throw new DOMException(child, 'TypeMismatchError');
    if (entry === undefined && !create) throw new DOMException(child, 'NotFoundError');
    const found = entry ?? make();
    folder.set(child, found as MemoryFile | MemoryFolder);
    return found as T;
  };
  const isFolder = (entry: unknown): entry is MemoryFolder => entry instanceof Map;
  const isFile = (entry: unknown): entry is MemoryFile => !(entry instanceof Map);
  return {
    kind: 'directory',
    name,
    getDirectoryHandle: async (child: string, { create = false } = {}) =>
      folderHandle(
        child,
        find(child, create, isFolder, () => new Map()),
        room,
      ),
    getFileHandle: async (child: string, { create = false } = {}) =>
      fileHandle(
        child,
        find(child, create, isFile, () => ({ pages: new Map(), size: 0 })),
        room,
      ),
    async removeEntry(child: string, { recursive = false } = {}) {
      const entry = folder.get(child);
      if (entry === undefined) throw new DOMException(child, 'NotFoundError');
      if (entry instanceof Map && entry.size > 0 && !recursive)
        throw new DOMException(child, 'InvalidModificationError');
      folder.delete(child);
      room.left += sizeOf(entry);
    },
    async *entries() {
      for (const [child, entry] of [...folder]) yield [child, handleOf(child, entry)];
    },
  } as unknown as FileSystemDirectoryHandle;
}

function sizeOf(entry: MemoryFile | MemoryFolder): number {
  if (!(entry instanceof Map)) return entry.size;
  return [...entry.values()].reduce((sum, child) => sum + sizeOf(child), 0);
}

function fileHandle(name: string, file: MemoryFile, room: Room): FileSystemFileHandle {
  return {
    kind: 'file',
    name,
    async getFile() {
      file.snapshot ??= new File([...pagesOf(file)], name);
      return file.snapshot;
    },
    createSyncAccessHandle: async () => memoryAccess(file, room),
  } as unknown as FileSystemFileHandle;
}

function* pagesOf({ pages, size }: MemoryFile): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < size; at += PAGE) {
    yield (pages.get(at / PAGE) ?? new Uint8Array(PAGE)).subarray(0, Math.min(PAGE, size - at));
  }
}

function memoryAccess(file: MemoryFile, room: Room): FileSystemSyncAccessHandle {
  const view = (buffer: AllowSharedBufferSource) =>
    ArrayBuffer.isView(buffer)
      ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
      : new Uint8Array(buffer);
  const resize = (size: number) => {
    if (size - file.size > room.left) throw new DOMException('memory is full', 'QuotaExceededError');
    room.left -= size - file.size;
    file.size = size;
    delete file.snapshot;
  };
  /** Calls `act` for each page that bytes `[at, at + length)` lie in, with their place in it. */
  const overPages = (
    at: number,
    length: number,
    act: (page: number, from: number, done: number, n: number) => void,
  ) => {
    for (let done = 0; done < length; ) {
      const from = (at + done) % PAGE;
      const n = Math.min(PAGE - from, length - done);
      act(Math.floor((at + done) / PAGE), from, done, n);
      done += n;
    }
  };
  return {
    getSize: () => file.size,
    read(buffer, options) {
      const bytes = view(buffer);
      const at = options?.at ?? 0;
      const length = Math.max(0, Math.min(bytes.length, file.size - at));
      overPages(at, length, (page, from, done, n) => {
        const own = file.pages.get(page);
        if (own) bytes.set(own.subarray(from, from + n), done);
        else bytes.fill(0, done, done + n);
      });
      return length;
    },
    write(buffer, options) {
      const bytes = view(buffer);
      const at = options?.at ?? 0;
      resize(Math.max(file.size, at + bytes.length));
      overPages(at, bytes.length, (page, from, done, n) => {
        const own = file.pages.get(page) ?? new Uint8Array(PAGE);
        file.pages.set(page, own);
        own.set(bytes.subarray(done, done + n), from);
      });
      return bytes.length;
    },
    truncate(size) {
      resize(size);
      // what was cut off reads as zeros when the file grows again
      for (const page of file.pages.keys()) if (page * PAGE >= size) file.pages.delete(page);
      file.pages.get(Math.floor(size / PAGE))?.fill(0, size % PAGE);
    },
    flush() {},
    close() {},
  };
}
