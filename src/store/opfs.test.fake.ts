/**
 * The browser's storage in memory, for Node: file and folder handles with synchronous access, Web Locks, a limited
 * capacity with each way a browser reports that it is reached, and power cuts. A power cut may lose, leave or tear
 * unflushed bytes, in any combination.
 */
import { memoryLocks } from './memory-storage';

type Change = { at: number; bytes: Uint8Array } | { size: number };
/** What a power cut makes of a change that was not flushed: all of it, nothing of it, or its first half. */
export type Fate = (change: number) => 'lost' | 'kept' | 'torn';

/** Bytes with room behind them: many small writes cost what they write. */
class Content {
  private room = new Uint8Array(0);
  size = 0;

  read(begin = 0, end = this.size): Uint8Array<ArrayBuffer> {
    return this.room.slice(begin, Math.min(end, this.size));
  }

  apply(change: Change): void {
    const end = 'size' in change ? change.size : Math.max(this.size, change.at + change.bytes.length);
    if (end > this.room.length) {
      const wider = new Uint8Array(Math.max(end, 2 * this.room.length));
      wider.set(this.room);
      this.room = wider;
    }
    // what comes after a shorter end is zero when the file grows again
    this.room.fill(0, end, this.size);
    this.size = end;
    if ('bytes' in change) this.room.set(change.bytes, change.at);
  }
}

/** A file of which only what was flushed survives a power cut for certain. */
export class UnflushedFile {
  private disk = new Content();
  private now = new Content();
  private pending: Change[] = [];

  get size(): number {
    return this.now.size;
  }

  read(begin?: number, end?: number): Uint8Array<ArrayBuffer> {
    return this.now.read(begin, end);
  }

  change(change: Change): void {
    this.pending.push(change);
    this.now.apply(change);
  }

  flush(): void {
    for (const change of this.pending) this.disk.apply(change);
    this.pending = [];
  }

  powerCut(fate: () => ReturnType<Fate>): void {
    for (const change of this.pending) {
      const how = fate();
      if (how === 'torn' && 'bytes' in change) {
        const { at, bytes } = change;
        this.disk.apply({ at, bytes: bytes.subarray(0, bytes.length >> 1) });
      } else if (how !== 'lost') this.disk.apply(change);
    }
    this.pending = [];
    this.now = new Content();
    this.now.apply({ at: 0, bytes: this.disk.read() });
  }

  /** Flips the lowest bit of one byte on the disk. */
  rot(at: number): void {
    this.change({ at, bytes: Uint8Array.of((this.read(at, at + 1)[0] ?? 0) ^ 1) });
    this.flush();
  }
}

interface FakeFile {
  kind: 'file';
  content: UnflushedFile;
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
  powerCut(fate: Fate): void;
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
        file.content.powerCut(() => fate(change++));
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
  return fileAt(storage, path)?.content.read();
}

/** Flips the lowest bit of one byte on the disk. */
export function rot(storage: FakeStorage, path: string, at: number): void {
  const file = fileAt(storage, path);
  if (!file) throw new Error(`no ${path}`);
  file.content.rot(at);
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
  const file = newFile();
  file.content.change({ at: 0, bytes: new TextEncoder().encode(text) });
  file.content.flush();
  folder.entries.set(parts.at(-1) ?? '', file);
}

const newFile = (): FakeFile => ({ kind: 'file', content: new UnflushedFile(), readers: 0, writer: false });

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
    const made: FakeFile | FakeFolder = kind === 'directory' ? { kind, entries: new Map() } : newFile();
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
      return new File([file.content.read()], name);
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
    for (const other of filesIn(storage.root)) if (other !== file) others += other.content.size;
    return others + size <= storage.capacity;
  };
  return {
    getSize() {
      step(storage);
      return file.content.size;
    },
    read(buffer, options) {
      step(storage);
      const at = options?.at ?? 0;
      const part = file.content.read(at, at + buffer.byteLength);
      new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).set(part);
      return part.length;
    },
    write(buffer, options) {
      step(storage);
      const at = options?.at ?? 0;
      const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).slice();
      if (fits(at + bytes.length)) {
        file.content.change({ at, bytes });
        return bytes.length;
      }
      if (storage.whenFull === 'throws') throw new DOMException('full', 'QuotaExceededError');
      if (storage.whenFull === 'silent') return 4294967288;
      file.content.change({ at, bytes: bytes.subarray(0, bytes.length >> 1) });
      return bytes.length >> 1;
    },
    truncate(size) {
      step(storage);
      if (fits(size)) file.content.change({ size });
      else if (storage.whenFull === 'throws') throw new DOMException('full', 'QuotaExceededError');
    },
    flush() {
      step(storage);
      file.content.flush();
    },
    close() {
      if (readOnly) file.readers--;
      else file.writer = false;
    },
  };
}
