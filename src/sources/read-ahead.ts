import type { ByteSource } from './byte-source';
import { giveBack, spareArray } from './spare-arrays';

/** Bytes that are read at once where small reads follow each other. */
export const AHEAD_BYTES = 256 * 2 ** 10;
/** Files of which such bytes are in memory: of others they were read last. */
export const MOST_AHEAD = 16;

interface Window {
  begin: number;
  bytes: Uint8Array<ArrayBuffer>;
}

const NOTHING = new Uint8Array(0);
/** Windows of all sources that have bytes; the one filled last comes last. */
const filled = new Set<Window>();

function empty(window: Window): void {
  giveBack(window.bytes.buffer);
  window.bytes = NOTHING;
  filled.delete(window);
}

/**
 * The same source, whose small reads at once are served from larger ones where they follow each other: a file may hold thousands
 * of small tensors. No byte of what follows is read twice, so that a hash goes along.
 */
export function readingAhead<T extends ByteSource>(source: T): T {
  if (!source.readNow) return source;
  const { byteLength } = source;
  const window: Window = { begin: 0, bytes: NOTHING };
  let last = -1;
  const readNow: ByteSource['readNow'] = (begin, end, into) => {
    const follows = begin === last;
    last = end;
    const from = begin - window.begin;
    const held = from < 0 ? NOTHING : window.bytes.subarray(from, from + end - begin);
    into.set(held);
    const at = begin + held.length;
    if (at === end) return true;
    const rest = into.subarray(held.length);
    if (!follows || end - at > AHEAD_BYTES / 4) return source.readNow!(at, end, rest);
    empty(window);
    const bytes = spareArray(Math.min(AHEAD_BYTES, byteLength - at));
    if (!source.readNow!(at, at + bytes.length, bytes)) {
      // a piece of a download that was not looked at yet takes waiting; what is asked for may not reach it
      giveBack(bytes.buffer);
      return source.readNow!(at, end, rest);
    }
    Object.assign(window, { begin: at, bytes });
    filled.add(window);
    rest.set(bytes.subarray(0, rest.length));
    const [oldest] = filled;
    if (filled.size > MOST_AHEAD) empty(oldest!);
    return true;
  };
  return { ...source, readNow };
}
