/**
 * The browser's storage in memory, for Node: file and folder handles with synchronous access, Web Locks, a limited
 * capacity with each way a browser reports that it is reached, and power cuts. A power cut may lose, leave or tear
 * unflushed bytes, in any combination.
 */
import { memoryLocks } from './memory-storage';

type Pending = { at: number; bytes: Uint8Array } | { size: number };

interface FakeFile {
  kind: 'file';
  disk: Uint8Array<ArrayBuffer>;
  /** Changes since the last flush. */
  pending: Pending[];
  readers: number;
  writer: boolean;
}

interface FakeFolder {
  kind: 'directory';
  entries: Map<string, FakeFile | FakeFolder>;
}

export interface FakeStorage {
  /** Properties for `navigator`. */
  navigator: { storage: { getDirectory(): Promise<unknown> }; locks: unknown };
  root: FakeFolder;
  /** Operations done so far. */
  steps: number;
  /** The operation at which the power fails; every later one fails too. */
  failAt: number;
  /** Most bytes over all files. */
  capacity: number;
  /** How a write beyond the capacity shows: an exception, a short count, or Chromium's −8 in a private window. */
  whenFull: 'throws' | 'short' | 'silent';
  /** The machine comes back: unflushed changes meet the fate that `fate` names, and all handles are gone. */
  powerCut(fate: (change: number) => 'lost' | 'kept' | 'torn'): void;
}

export function fakeStorage(): FakeStorage {
  const root: FakeFolder = { kind: 'directory', entries: new Map() };
  const storage: FakeStorage = {
    navigator: {
      storage: { getDirectory: async () => folderHandle(storage, root, '') },
      locks: memoryLocks(),
    },
    root,
    steps: 0,
    failAt: Infinity,
    capacity: Infinity,
    whenFull: 'throws',
    powerCut(fate) {
      let change = 0;
      for (const file of filesIn(root)) {
        for (const pending of file.pending) file.disk = apply(file.disk, pending, fate(change++));
        file.pending = [];
        file.readers = 0;
        file.writer = false;
      }
      storage.failAt = Infinity;
      storage.steps = 0;
    },
  };
  return storage;
}

/** The file at a path of the storage, as it would be read now. */
export function contentOf(storage: FakeStorage, path: string): Uint8Array<ArrayBuffer> | undefined {
  const file = fileAt(storage, path);
  return file && current(file);
}

/** Flips the lowest bit of one byte on the disk. */
export function rot(storage: FakeStorage, path: string, at: number): void {
  const file = fileAt(storage, path);
  if (!file) throw new Error(`no ${path}`);
  file.disk = current(file);
  file.pending = [];
  file.disk[at] = (file.disk[at] ?? 0) ^ 1;
}

/** Puts a file there, whole and flushed. */
export function plant(storage: FakeStorage, path: string, text: string): void {
  let folder = storage.root;
  const parts = path.split('/');
  for (const part of parts.slice(0, -1)) {
    const next: FakeFile | FakeFolder = folder.entries.get(part) ?? { kind: 'directory', entries: new Map() };
    folder.entries.set(part, next);
    if (next.kind === 'directory') folder = next;
  }
  const disk = new TextEncoder().encode(text);
  folder.entries.set(parts.at(-1) ?? '', { kind: 'file', disk, pending: [], readers: 0, writer: false });
}

function fileAt(storage: FakeStorage, path: string): FakeFile | undefined {
  let entry: FakeFile | FakeFolder | undefined = storage.root;
  for (const part of path.split('/'))
    entry = entry?.kind === 'directory' ? entry.entries.get(part) : undefined;
  return entry?.kind === 'file' ? entry : undefined;
}

function* filesIn(folder: FakeFolder): Generator<FakeFile> {
  for (const entry of folder.entries.values()) {
    if (entry.kind === 'file') yield entry;
    else yield* filesIn(entry);
  }
}

function current(file: FakeFile): Uint8Array<ArrayBuffer> {
  return file.pending.reduce((disk, pending) => apply(disk, pending, 'kept'), file.disk.slice());
}

/** One change on the disk: all of it, nothing of it, or its first half. */
function apply(disk: Uint8Array<ArrayBuffer>, change: Pending, fate: string): Uint8Array<ArrayBuffer> {
  if (fate === 'lost') return disk;
  if ('size' in change) {
    const resized = new Uint8Array(change.size);
    resized.set(disk.subarray(0, change.size));
    return resized;
  }
  const bytes = fate === 'torn' ? change.bytes.subarray(0, change.bytes.length >> 1) : change.bytes;
  const grown = new Uint8Array(Math.max(disk.length, change.at + bytes.length));
  grown.set(disk);
  grown.set(bytes, change.at);
  return grown;
}

function step(storage: FakeStorage): void {
  if (storage.steps++ >= storage.failAt) throw new DOMException('the power is gone', 'InvalidStateError');
}

function folderHandle(storage: FakeStorage, folder: FakeFolder, name: string): object {
  const get = (child: string, kind: 'file' | 'directory', create: boolean): FakeFile | FakeFolder => {
    step(storage);
    const entry = folder.entries.get(child);
    if (entry && entry.kind !== kind) throw new DOMException(child, 'TypeMismatchError');
    if (entry) return entry;
    if (!create) throw new DOMException(child, 'NotFoundError');
    const made: FakeFile | FakeFolder =
      kind === 'directory'
        ? { kind, entries: new Map() }
        : { kind, disk: new Uint8Array(0), pending: [], readers: 0, writer: false };
    folder.entries.set(child, made);
    return made;
  };
  return {
    kind: 'directory',
    name,
    async getDirectoryHandle(child: string, options?: { create?: boolean }) {
      return folderHandle(storage, get(child, 'directory', options?.create ?? false) as FakeFolder, child);
    },
    async getFileHandle(child: string, options?: { create?: boolean }) {
      return fileHandle(storage, get(child, 'file', options?.create ?? false) as FakeFile, child);
    },
    async removeEntry(child: string) {
      step(storage);
      const entry = folder.entries.get(child);
      if (!entry) throw new DOMException(child, 'NotFoundError');
      for (const file of entry.kind === 'file' ? [entry] : filesIn(entry)) {
        if (file.readers > 0 || file.writer) throw new DOMException(child, 'NoModificationAllowedError');
      }
      folder.entries.delete(child);
    },
    async *entries() {
      for (const [child, entry] of folder.entries) {
        yield [
          child,
          entry.kind === 'file' ? fileHandle(storage, entry, child) : folderHandle(storage, entry, child),
        ];
      }
    },
  };
}

function fileHandle(storage: FakeStorage, file: FakeFile, name: string): object {
  return {
    kind: 'file',
    name,
    async getFile() {
      step(storage);
      return new File([current(file)], name);
    },
    async createSyncAccessHandle(options?: { mode: string }) {
      step(storage);
      const readOnly = options?.mode === 'read-only';
      if (file.writer || (!readOnly && file.readers > 0)) {
        throw new DOMException(name, 'NoModificationAllowedError');
      }
      if (readOnly) file.readers++;
      else file.writer = true;
      return syncHandle(storage, file, readOnly);
    },
  };
}

function syncHandle(storage: FakeStorage, file: FakeFile, readOnly: boolean): FileSystemSyncAccessHandle {
  const fits = (size: number) => {
    let others = 0;
    for (const other of filesIn(storage.root)) if (other !== file) others += current(other).length;
    return others + size <= storage.capacity;
  };
  return {
    getSize() {
      step(storage);
      return current(file).length;
    },
    read(buffer, options) {
      step(storage);
      const at = options?.at ?? 0;
      const part = current(file).subarray(at, at + buffer.byteLength);
      new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).set(part);
      return part.length;
    },
    write(buffer, options) {
      step(storage);
      const at = options?.at ?? 0;
      const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).slice();
      if (fits(at + bytes.length)) {
        file.pending.push({ at, bytes });
        return bytes.length;
      }
      if (storage.whenFull === 'throws') throw new DOMException('full', 'QuotaExceededError');
      if (storage.whenFull === 'silent') return 4294967288;
      file.pending.push({ at, bytes: bytes.subarray(0, bytes.length >> 1) });
      return bytes.length >> 1;
    },
    truncate(size) {
      step(storage);
      if (fits(size)) file.pending.push({ size });
      else if (storage.whenFull === 'throws') throw new DOMException('full', 'QuotaExceededError');
    },
    flush() {
      step(storage);
      file.disk = current(file);
      file.pending = [];
    },
    close() {
      if (readOnly) file.readers--;
      else file.writer = false;
    },
  };
}
