/**
 * A destination in memory that can be killed: what was written but not flushed is then lost, kept or torn, as the test
 * says, and every handle is dead.
 */
import { bufferSource } from '../sources/buffer-source';
import type { Destination, FileSink } from './destination';

interface MemoryFile {
  disk: Uint8Array<ArrayBuffer>;
  pending: { at: number; bytes: Uint8Array<ArrayBuffer> }[];
}

export interface DiskAct {
  kind: 'write' | 'flush' | 'commit';
  path: string;
}

export interface MemoryDisk {
  files: Map<string, MemoryFile>;
  isCommitted: boolean;
  /** Acts so far: it fails at the first one that `fails` names, and from there on. */
  steps: number;
  fails: (step: number, act: DiskAct) => boolean;
  open(continues: boolean): Destination;
  /** The machine comes back. */
  kill(fate: (change: number) => 'lost' | 'kept' | 'torn'): void;
}

export const JOURNAL = 'run.jsonl';

export function memoryDisk(): MemoryDisk {
  const files: MemoryDisk['files'] = new Map();
  let isDead = false;
  const step = (kind: DiskAct['kind'], path: string) => {
    isDead ||= disk.fails(disk.steps++, { kind, path });
    if (isDead) throw new Error('killed');
  };
  const fileAt = (path: string) => {
    const file = files.get(path) ?? { disk: new Uint8Array(0), pending: [] };
    files.set(path, file);
    return file;
  };
  const sink = (path: string, bytes: number): FileSink => {
    const file = fileAt(path);
    file.disk = current(file).slice(0, bytes);
    file.pending = [];
    const flush = async () => {
      step('flush', path);
      file.disk = current(file);
      file.pending = [];
    };
    return {
      async write(piece, at) {
        step('write', path);
        file.pending.push({ at, bytes: piece.slice() });
      },
      flush,
      close: flush,
    };
  };
  const disk: MemoryDisk = {
    files,
    isCommitted: false,
    steps: 0,
    fails: () => false,
    open: (continues) => ({
      create: async (path) => sink(path, 0),
      async commit() {
        step('commit', '');
        disk.isCommitted = true;
      },
      async discard() {
        files.clear();
      },
      left: async (path) => {
        const file = files.get(path);
        return file && bufferSource(current(file), path);
      },
      remains: {
        readJournal: async () => current(fileAt(JOURNAL)),
        async appendJournal(at, line) {
          const journal = sink(JOURNAL, at);
          await journal.write(line, at);
          await journal.close([], at + line.length);
        },
        adopt: async () => {},
        ...(continues ? { reopen: async (path: string, bytes: number) => sink(path, bytes) } : {}),
        keep: async () => {},
      },
    }),
    kill(fate) {
      let change = 0;
      for (const file of files.values()) {
        for (const { at, bytes } of file.pending) {
          const how = fate(change++);
          if (how === 'lost') continue;
          const kept = how === 'torn' ? bytes.subarray(0, bytes.length >> 1) : bytes;
          file.disk = written(file.disk, at, kept);
        }
        file.pending = [];
      }
      disk.fails = () => false;
      isDead = false;
      disk.steps = 0;
    },
  };
  return disk;
}

export function current(file: MemoryFile): Uint8Array<ArrayBuffer> {
  return file.pending.reduce((all, { at, bytes }) => written(all, at, bytes), file.disk);
}

function written(disk: Uint8Array<ArrayBuffer>, at: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const grown = new Uint8Array(Math.max(disk.length, at + bytes.length));
  grown.set(disk);
  grown.set(bytes, at);
  return grown;
}
