import type { ByteSource, SourceOrigin } from '../sources/byte-source';
import type { Leaf } from '../sources/tree-hash';

/**
 * Where an output folder goes. Several files may be open at once. Nothing may look complete before `commit`: the index
 * (or the last file the loader needs) is written last by the caller, and `discard` removes whatever was begun.
 */
export interface Destination {
  /**
   * Begins a file; what an interrupted run left under that name goes.
   * @throws DestinationFailed when it cannot be created
   */
  create(path: string): Promise<FileSink>;
  /** Tree hashes of the files that are closed, once all were read back. Absent where nothing can be read back. */
  written?(): Promise<ReadonlyMap<string, string>>;
  /** Has other threads read back what is closed from now on, where they can open it. */
  readBackBy?(hash: HashPieces): void;
  /** All files are closed and whole. */
  commit(): Promise<void>;
  /** Removes every file this destination created. Safe to call twice. */
  discard(): Promise<void>;
  /** Finds out by trying whether there is room for `bytes` more. Absent where that cannot be tried. @throws StorageFull */
  requireRoom?(bytes: number): Promise<void>;
  /**
   * A closed file, or the rest of one from an interrupted run; undefined when there is none. Absent where nothing is
   * stored.
   */
  left?(path: string): Promise<ByteSource | undefined>;
  /** Journal and files that make an interrupted run resumable; absent where nothing can be stored. */
  readonly remains?: Remains;
}

/** Remains of an interrupted run at its destination, and how the next one resumes from them. */
export interface Remains {
  /** The journal as it is, torn end included; empty for a new run. */
  readJournal(): Promise<Uint8Array<ArrayBuffer>>;
  /** Appends to the first `at` bytes of the journal (what follows them is cut off); on the disk when it resolves. */
  appendJournal(at: number, line: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Takes over a file that the interrupted run finished, of `bytes` bytes and with that tree hash. */
  adopt(path: string, bytes: number, hash: string): Promise<void>;
  /** Goes on writing a file after its first `bytes` bytes. Absent where files cannot be continued. */
  reopen?(path: string, bytes: number): Promise<FileSink>;
  /** Closes everything and leaves it in place for a later run. Safe to call twice. */
  keep(): Promise<void>;
}

/** The leaves of pieces of a file, found in another thread. */
export type HashPieces = (file: SourceOrigin, pieces: readonly number[]) => Promise<readonly Leaf[]>;

export interface FileSink {
  /** By what other threads open the file; absent where only this one can write it. */
  readonly place?: FilePlace;
  /**
   * Writes at a place of the file. The caller may then reuse the array. What could not be written may show in a later
   * call only, at the latest in `flush` or `close`.
   */
  write(bytes: Uint8Array<ArrayBuffer>, at: number): Promise<void>;
  /** Makes the written bytes durable. Absent where a file exists only once it is closed. */
  flush?(): Promise<void>;
  /** @param leaves of the whole file, in order @param length its bytes, whoever wrote them */
  close(leaves: readonly Leaf[], length: number): Promise<void>;
}

/** Plain data that crosses threads. */
export type FilePlace = { kind: 'disk'; location: string } | { kind: 'opfs'; file: FileSystemFileHandle };

/** A finished shard, as in the run report. */
export interface WrittenShard {
  file: string;
  bytes: number;
  /** Tree hash of the bytes as they were handed to the destination. */
  hash: string;
}
