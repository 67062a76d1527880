/**
 * A destination in memory that can be killed: what was written but not flushed is then lost, kept or torn, as the test
 * says, and every handle is dead.
 */
import { bufferSource } from '../sources/byte-source';
import { type Fate, UnflushedFile } from '../store/opfs.test.fake';
import type { Destination, FileSink } from './destination';

export interface DiskAct {
  kind: 'write' | 'flush' | 'commit';
  path: string;
}

export interface MemoryDisk {
  files: Map<string, UnflushedFile>;
  isCommitted: boolean;
  /** Acts so far: it fails at the first one that `fails` names, and from there on. */
  steps: number;
  fails: (step: number, act: DiskAct) => boolean;
  open(continues: boolean): Destination;
  /** The machine comes back. */
  kill(fate: Fate): void;
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
    const file = files.get(path) ?? new UnflushedFile();
    files.set(path, file);
    return file;
  };
  const sink = (path: string, bytes: number): FileSink => {
    const file = fileAt(path);
    file.change({ size: Math.min(file.size, bytes) });
    file.flush();
    const flush = async () => {
      step('flush', path);
      file.flush();
    };
    return {
      async write(piece, at) {
        step('write', path);
        file.change({ at, bytes: piece.slice() });
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
        return file && bufferSource(file.read(), path);
      },
      remains: {
        readJournal: async () => fileAt(JOURNAL).read(),
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
      for (const file of files.values()) file.powerCut(() => fate(change++));
      disk.fails = () => false;
      isDead = false;
      disk.steps = 0;
    },
  };
  return disk;
}
