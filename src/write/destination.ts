/**
 * Where an output folder goes. Files are written one after the other, front to back. Nothing may look complete before
 * `commit`: the index (or the last file the loader needs) is written last by the caller, and `discard` removes
 * whatever was begun.
 */
export interface Destination {
  /** Begins a file. @throws DestinationFailed when it cannot be created. */
  create(path: string): Promise<FileSink>;
  /** All files are closed and whole. */
  commit(): Promise<void>;
  /** Removes every file this destination created. Safe to call twice. */
  discard(): Promise<void>;
}

export interface FileSink {
  /** Appends. The array may be reused by the caller once the promise resolves. */
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): Promise<void>;
}
