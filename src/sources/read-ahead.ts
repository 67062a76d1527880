import type { ByteSource } from './byte-source';
import { giveBack, spareArray } from './spare-arrays';

/** Bytes that are read at once where small reads follow each other. */
export const AHEAD_BYTES = 256 * 2 ** 10;

/**
 * Reads at once, as `readNow`, of which small ones that follow each other are served from larger ones: a file may hold thousands of
 * small tensors.
 * @param byteLength of the file
 */
export function readingAhead(
  readNow: NonNullable<ByteSource['readNow']>,
  byteLength: number,
): NonNullable<ByteSource['readNow']> {
  let window = { begin: 0, bytes: new Uint8Array(0) };
  let last = -1;
  return (begin, end, into) => {
    const follows = begin === last;
    last = end;
    const from = begin - window.begin;
    const to = end - window.begin;
    if (from >= 0 && to <= window.bytes.length) {
      into.set(window.bytes.subarray(from, to));
      return true;
    }
    if (!follows || end - begin > AHEAD_BYTES / 4) return readNow(begin, end, into);
    giveBack(window.bytes.buffer);
    const bytes = spareArray(Math.min(AHEAD_BYTES, byteLength - begin));
    window = { begin, bytes: new Uint8Array(0) };
    if (!readNow(begin, begin + bytes.length, bytes)) return false;
    window = { begin, bytes };
    into.set(bytes.subarray(0, end - begin));
    return true;
  };
}
