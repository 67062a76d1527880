/** Files that several models read side by side: every byte comes from the disk once, until all have gone on. */

import type { ReadTensor } from '../inputs/stored-tensor';
import type { OpenSource } from '../store/blobs';

export interface SharedSources {
  share(source: OpenSource): OpenSource;
  /** Empties the cache once all readers are past it. */
  forget(): void;
  /** Bytes read from the sources so far, and seconds spent waiting for them. */
  readonly bytesRead: number;
  readonly seconds: number;
}

interface Segment {
  begin: number;
  bytes: Uint8Array<ArrayBuffer>;
}

/** @param cacheBytes most bytes in the cache; reads beyond it go to the disk again for every reader */
export function shareSources(cacheBytes: number): SharedSources {
  const files = new Set<{ segments: Segment[] }>();
  let cachedBytes = 0;
  let bytesRead = 0;
  let seconds = 0;

  const share = (source: OpenSource): OpenSource => {
    const file = { segments: [] as Segment[] };
    files.add(file);
    // one read after the other, so that two readers never fetch the same bytes at the same time
    let turn: Promise<unknown> = Promise.resolve();
    const read = async (begin: number, end: number, signal?: AbortSignal) => {
      const out = new Uint8Array(end - begin);
      const fetched: Segment[] = [];
      let at = begin;
      const fetchTo = async (to: number) => {
        if (to <= at) return;
        const begun = performance.now();
        const bytes = await source.read(at, to, signal);
        seconds += (performance.now() - begun) / 1000;
        bytesRead += bytes.length;
        out.set(bytes, at - begin);
        fetched.push({ begin: at, bytes });
        at = to;
      };
      for (const segment of file.segments) {
        const segmentEnd = segment.begin + segment.bytes.length;
        if (segmentEnd <= at) continue;
        if (segment.begin >= end) break;
        await fetchTo(segment.begin);
        const upTo = Math.min(end, segmentEnd);
        out.set(segment.bytes.subarray(at - segment.begin, upTo - segment.begin), at - begin);
        at = upTo;
      }
      await fetchTo(end);
      for (const segment of fetched) {
        if (cachedBytes + segment.bytes.length > cacheBytes) continue;
        cachedBytes += segment.bytes.length;
        file.segments.push(segment);
      }
      if (fetched.length > 0) file.segments.sort((a, b) => a.begin - b.begin);
      return out;
    };
    return {
      byteLength: source.byteLength,
      read(begin, end, signal) {
        const mine = turn.then(() => read(begin, end, signal));
        turn = mine.catch(() => undefined);
        return mine;
      },
      close() {
        files.delete(file);
        source.close();
      },
    };
  };

  return {
    share,
    forget() {
      for (const file of files) file.segments = [];
      cachedBytes = 0;
    },
    get bytesRead() {
      return bytesRead;
    },
    get seconds() {
      return seconds;
    },
  };
}

export interface ReadingClock {
  read: ReadTensor;
  /** Seconds during which at least one read was under way. */
  readonly seconds: number;
}

/** Reads as `read` does, and adds up the time. */
export function readingClock(read: ReadTensor): ReadingClock {
  let seconds = 0;
  let underWay = 0;
  let begun = 0;
  return {
    async read(...what) {
      if (underWay++ === 0) begun = performance.now();
      try {
        return await read(...what);
      } finally {
        if (--underWay === 0) seconds += (performance.now() - begun) / 1000;
      }
    },
    get seconds() {
      return seconds;
    },
  };
}
