import { fault } from '../errors';
import { throwIfCanceled } from './cancellation';

/**
 * Where bytes come from. The one seam between a file and everything above it: a sample asset, a local `File`, a Hub
 * object, an OPFS blob and a test buffer are all just this.
 */
export interface ByteSource {
  readonly byteLength: number;
  /**
   * Bytes `[begin, end)` as an array the caller owns. Returns exactly `end - begin` bytes or throws; never fewer.
   * @param into memory of that length in which they may come
   * @throws AmalgamError when the bytes cannot be had, `Canceled` when the signal fires.
   */
  read(
    begin: number,
    end: number,
    signal?: AbortSignal,
    into?: Uint8Array<ArrayBuffer>,
  ): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * The same at once, into memory that may move afterwards; false where it takes waiting. Absent where it always does.
   * @throws what {@link ByteSource.read} throws
   */
  readNow?(begin: number, end: number, into: Uint8Array<ArrayBuffer>): boolean;
  /** By what another thread opens the same bytes; absent where only this one can read them. */
  origin?(): Promise<SourceOrigin>;
  /**
   * The same bytes as they arrive, for a source that has them over time: the sink has been given all of them when it
   * resolves. @throws what {@link ByteSource.read} throws, and what the sink throws.
   */
  stream?(begin: number, end: number, sink: ByteSink, signal?: AbortSignal): Promise<void>;
}

/** Plain data that crosses threads. */
export type SourceOrigin =
  /** A file of this machine; `identity` tells it from another one, or a changed one, at the same place. */
  | { kind: 'disk'; location: string; identity: string; byteLength: number; name: string }
  | { kind: 'file'; file: Blob; name: string }
  /** In the cache of downloads. */
  | { kind: 'blob'; sha256: string };

export interface ByteSink {
  /** Takes the bytes that follow those of the last call. What it throws ends the stream. */
  take(bytes: Uint8Array<ArrayBuffer>): void;
  /**
   * The answer that bytes were taken from is wrong in itself. Forgets those that can still be forgotten.
   * @returns the offset in the file at which the next call of `take` has to begin.
   */
  goBack(): number;
}

/**
 * Checks that `[begin, end)` lies in a file of `byteLength` bytes. Readers validate offsets before they read, so a
 * range outside is a fault of ours, not of the file.
 * @throws Internal naming the file and the range.
 */
export function checkByteRange(begin: number, end: number, byteLength: number, name: string): void {
  const inside = Number.isSafeInteger(begin) && Number.isSafeInteger(end) && 0 <= begin && begin <= end;
  if (inside && end <= byteLength) return;
  throw fault(`Bytes ${begin} to ${end} of ${name} were asked for, which has ${byteLength} bytes.`);
}

/** A source over bytes already in memory: small files and tests. `name` is what messages call it. */
export function bufferSource(bytes: Uint8Array<ArrayBuffer>, name = 'the buffer'): ByteSource {
  return {
    byteLength: bytes.length,
    async read(begin, end, signal) {
      throwIfCanceled(signal);
      checkByteRange(begin, end, bytes.length, name);
      return bytes.slice(begin, end);
    },
  };
}
