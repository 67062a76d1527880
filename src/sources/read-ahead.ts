import type { ByteSource } from './byte-source';
import { giveBack, spareArray } from './spare-arrays';

/** Bytes that are read at once where small reads follow each other. */
export const AHEAD_BYTES = 256 * 2 ** 10;

/**
 * The same source, whose small reads at once are served from larger ones where they follow each other: a file may hold thousands
 * of small tensors.
 */
export function readingAhead<T extends ByteSource>(source: T): T {
  if (!source.readNow) return source;
  const { byteLength } = source;
  let window = { begin: 0, bytes: new Uint8Array(0) };
  let last = -1;
  const readNow: ByteSource['readNow'] = (begin, end, into) => {
    const follows = begin === last;
    last = end;
    const from = begin - window.begin;
    const to = end - window.begin;
    if (from >= 0 && to <= window.bytes.length) {
      into.set(window.bytes.subarray(from, to));
      return true;
    }
    if (!follows || end - begin > AHEAD_BYTES / 4) return source.readNow!(begin, end, into);
    giveBack(window.bytes.buffer);
    const bytes = spareArray(Math.min(AHEAD_BYTES, byteLength - begin));
    window = { begin, bytes: new Uint8Array(0) };
    if (!source.readNow!(begin, begin + bytes.length, bytes)) return false;
    window = { begin, bytes };
    into.set(bytes.subarray(0, end - begin));
    return true;
  };
  return { ...source, readNow };
}
