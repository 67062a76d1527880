/** The part of the browser's storage that Amalgam uses, in folders of this machine: files with synchronous access. */
import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { AmalgamError } from '../../errors';
import { checkByteRange } from '../../sources/byte-source';
import { spareArray } from '../../sources/spare-arrays';
import type { OpenSource } from '../../store/blobs';
import { destinationError } from '../../write/destination-error';

/**
 * The outermost folder that was made so that `path` is one; undefined where it was there. Node's own `recursive` asks again
 * forever where a folder takes none, as in /proc.
 */
export function makeFolders(path: string): string | undefined {
  const isThere = () => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  if (isThere()) return undefined;
  const above = dirname(path);
  const outermost = above === path ? undefined : makeFolders(above);
  try {
    mkdirSync(path);
  } catch (thrown) {
    // somebody else was quicker
    if (!isThere()) throw thrown;
  }
  return outermost ?? path;
}

/** A folder as a `FileSystemDirectoryHandle`; only what `store/` and `write/` ask of one is there. */
export function diskDirectory(path: string, name = ''): FileSystemDirectoryHandle {
  const kindOf = (child: string) => {
    const stats = statSync(join(path, child), { throwIfNoEntry: false });
    return stats && (stats.isDirectory() ? 'directory' : 'file');
  };
  const wanted = (child: string, kind: 'file' | 'directory', create: boolean) => {
    const found = kindOf(child);
    if (found && found !== kind) throw new DOMException(child, 'TypeMismatchError');
    if (!found && !create) throw new DOMException(child, 'NotFoundError');
    return found !== undefined;
  };
  return {
    kind: 'directory',
    name,
    async getDirectoryHandle(child: string, { create = false } = {}) {
      if (!wanted(child, 'directory', create)) inWords(path, () => makeFolders(join(path, child)));
      return diskDirectory(join(path, child), child);
    },
    async getFileHandle(child: string, { create = false } = {}) {
      if (!wanted(child, 'file', create)) inWords(path, () => closeSync(openSync(join(path, child), 'a')));
      return diskFile(join(path, child), child);
    },
    async removeEntry(child: string) {
      if (!existsSync(join(path, child))) throw new DOMException(child, 'NotFoundError');
      inWords(path, () => rmSync(join(path, child), { recursive: true }));
    },
    async *entries() {
      for (const entry of await readdir(path, { withFileTypes: true })) {
        const inside = join(path, entry.name);
        const handle = entry.isDirectory() ? diskDirectory(inside, entry.name) : diskFile(inside, entry.name);
        yield [entry.name, handle];
      }
    },
  } as unknown as FileSystemDirectoryHandle;
}

function diskFile(path: string, name: string): FileSystemFileHandle {
  return {
    kind: 'file',
    name,
    async getFile() {
      return new DiskFile(path, name);
    },
    async createSyncAccessHandle({ mode = 'readwrite' } = {}) {
      const file = inWords(path, () => openSync(path, mode === 'read-only' ? 'r' : 'r+'));
      // what other threads share, they open by its path
      return { ...syncAccess(file, (act) => inWords(path, act)), ...(mode === 'read-only' && { mode }) };
    },
  } as unknown as FileSystemFileHandle;
}

/** A file of an output that is there, for writing at places; errors of its handle are those of the system. @throws DestinationFailed */
export function openFile(path: string): FileSystemSyncAccessHandle {
  try {
    return syncAccess(openSync(path, 'r+'), (act) => act());
  } catch (thrown) {
    throw destinationError(thrown, path);
  }
}

function syncAccess(file: number, changing: <T>(act: () => T) => T): FileSystemSyncAccessHandle {
  let open = true;
  const view = (buffer: AllowSharedBufferSource) =>
    ArrayBuffer.isView(buffer)
      ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
      : new Uint8Array(buffer);
  /** The system may take less than it is given; the rest follows. */
  const whole = (length: number, step: (done: number) => number) => {
    let done = 0;
    while (done < length) {
      const count = step(done);
      if (count === 0) break;
      done += count;
    }
    return done;
  };
  return {
    getSize: () => fstatSync(file).size,
    read(buffer, options) {
      const at = options?.at ?? 0;
      const bytes = view(buffer);
      return whole(bytes.length, (done) => readSync(file, bytes, done, bytes.length - done, at + done));
    },
    write(buffer, options) {
      const at = options?.at ?? 0;
      const bytes = view(buffer);
      return changing(() =>
        whole(bytes.length, (done) => writeSync(file, bytes, done, bytes.length - done, at + done)),
      );
    },
    truncate: (size) => changing(() => ftruncateSync(file, size)),
    flush: () => changing(() => fsyncSync(file)),
    // as in a browser, closing again does nothing: the number may be another file's by then
    close() {
      if (open) closeSync(file);
      open = false;
    },
  };
}

/**
 * A file that is read by one descriptor: finds at every read that it is the one that was opened first, unchanged.
 * @param identity of the file, where it was opened in another thread before
 */
export function diskSource(
  { location, byteLength, name }: { location: string; byteLength: number; name: string },
  identity?: string,
): OpenSource {
  let opened: { file: number; identity: string } | undefined;
  const changed = () =>
    new AmalgamError(
      'RunChanged',
      `${name} has changed while it was read.`,
      'Let whatever writes it finish, then start again.',
    );
  const reading = <T>(act: () => T): T => {
    try {
      return act();
    } catch (cause) {
      const { message } = cause as Error;
      const hint = 'See that it is still there, that you may read it, and that its disk works.';
      throw new AmalgamError('NotFound', `${name} cannot be read: ${message}.`, hint, { cause });
    }
  };
  const identify = (file: number) => {
    const { dev, ino, size, mtimeNs, ctimeNs } = fstatSync(file, { bigint: true });
    if (Number(size) !== byteLength) throw changed();
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  };
  const open = () => {
    if (opened) return opened;
    const file = reading(() => openSync(location, 'r'));
    opened = { file, identity: identify(file) };
    if (identity !== undefined && identity !== opened.identity) throw changed();
    return opened;
  };
  const readNow = (from: number, to: number, into: Uint8Array<ArrayBuffer>) => {
    checkByteRange(from, to, byteLength, name);
    const { file, identity: first } = open();
    for (let done = 0; done < into.length; ) {
      const bytesRead = reading(() => readSync(file, into, done, into.length - done, from + done));
      if (bytesRead === 0) throw changed();
      done += bytesRead;
    }
    if (identify(file) !== first) throw changed();
    return true;
  };
  return {
    byteLength,
    origin: async () => ({ kind: 'disk', location, byteLength, name, identity: open().identity }),
    async read(from, to, signal, into = spareArray(to - from)) {
      signal?.throwIfAborted();
      readNow(from, to, into);
      return into;
    },
    readNow,
    close() {
      if (opened) closeSync(opened.file);
      opened = undefined;
    },
  };
}

/**
 * Error of the system on a full or failing folder, in words. @throws StorageFull, StorageFailed, and errors of `act`
 */
export function inWords<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    const options = { cause: thrown };
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      const hint = 'Free some space, or give --cache a folder on another disk.';
      throw new AmalgamError('StorageFull', `There is no room left on the disk of ${path}.`, hint, options);
    }
    if (UNUSABLE.has(code ?? '')) {
      const hint = 'Check its permissions and its disk, or give --cache another folder.';
      throw new AmalgamError('StorageFailed', `${path} cannot be used: ${message}.`, hint, options);
    }
    throw thrown;
  }
}

const UNUSABLE = new Set(['EROFS', 'EACCES', 'EPERM', 'ENOTDIR', 'EEXIST', 'ENOENT', 'EIO']);

/** A file on the disk, of any size: `openAsBlob` of Node 20 takes one of 4 GiB or more for a shorter one. */
export class DiskFile extends File {
  readonly #path: string;
  readonly #begin: number;
  readonly #size: number;

  constructor(path: string, name: string, begin = 0, size = statSync(path).size) {
    super([], name);
    [this.#path, this.#begin, this.#size] = [path, begin, size];
  }

  override get size() {
    return this.#size;
  }

  override slice(begin = 0, end = this.#size) {
    const size = Math.max(0, Math.min(end, this.#size) - begin);
    return new DiskFile(this.#path, this.name, this.#begin + begin, size);
  }

  override stream() {
    const place = { start: this.#begin, end: this.#begin + this.#size - 1 };
    const file = this.#size === 0 ? Readable.from([]) : createReadStream(this.#path, place);
    return Readable.toWeb(file) as ReadableStream<Uint8Array<ArrayBuffer>>;
  }

  override async arrayBuffer() {
    return new Uint8Array(await buffer(this.stream())).buffer;
  }

  override async text() {
    return new TextDecoder().decode(await buffer(this.stream()));
  }
}
