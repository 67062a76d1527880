import type { ReadTensor } from '../inputs/stored-tensor';

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
